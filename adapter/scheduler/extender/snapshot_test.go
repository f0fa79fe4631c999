package extender

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

func TestSnapshotJoinsSources(t *testing.T) {
	read := func(sampled time.Time, now, predicted float64) snapshot.Use {
		return snapshot.Use{Sampled: sampled, Now: now, Predicted: predicted, Upper: predicted + 1}
	}
	load := func(u snapshot.Use) snapshot.NodeLoad { return snapshot.NodeLoad{CPU: u, Memory: u} }
	created := noon.Add(-time.Hour)
	recent := noon.Add(-10 * time.Second)
	busy := &slot{}
	nodes := []node{
		{slot: &slot{}, name: "quiet", created: created},
		{slot: busy, name: "busy", created: created},
		{slot: &slot{}, name: "unread", created: created},
		{slot: &slot{}, name: "again", created: recent.Add(time.Second)},
		{slot: &slot{}, name: "stale", created: created},
		{slot: &slot{}, name: "next", created: created},
		{slot: &slot{}, name: "going", created: created},
		{slot: &slot{}, name: "marked", created: created, removing: removalMark},
		{slot: &slot{}, name: "both", created: created, removing: removalMark},
	}
	loads := &snapshot.NodeLoads{Nodes: map[string]snapshot.NodeLoad{
		"quiet": load(read(recent, 5, 2)), "busy": load(read(recent, 5, 2)), "again": load(read(recent, 5, 2)),
		"stale": load(read(noon.Add(-30*time.Minute), 5, 2)), "gone": load(read(recent, 5, 2)),
	}}
	growing := []Growth{{Pool: "b"}}
	v := newSnapshot(noon, nodes, loads, map[*slot]bool{busy: true}, &PoolIntent{
		Removing:   map[string]string{"going": "a", "both": "a", "gone": "a"},
		Candidates: map[string]string{"next": "a"}, Growing: growing,
	})
	assert.Equal(t, noon, v.at)
	assert.Equal(t, growing, v.growing)
	assert.Len(t, v.nodes, len(nodes))
	assert.Equal(t, read(recent, 5, 2), v.nodes["quiet"].cpu)
	assert.Equal(t, read(recent, 5, 2), v.nodes["quiet"].memory)
	assert.Equal(t, snapshot.Use{Sampled: recent, Now: 5, Predicted: 5, Upper: 5}, v.nodes["busy"].cpu,
		"the forecast has not followed yet")
	assert.Equal(t, snapshot.Use{Sampled: recent, Now: 5, Predicted: 5, Upper: 5}, v.nodes["busy"].memory)
	assert.Equal(t, snapshot.Use{}, v.nodes["unread"].cpu)
	assert.Equal(t, snapshot.Use{}, v.nodes["again"].cpu, "that is of another node of the name")
	assert.Equal(t, read(noon.Add(-30*time.Minute), 5, 2), v.nodes["stale"].cpu,
		"how old it may be is for others to say")
	assert.Equal(t, [2]string{"", ""}, [2]string{v.nodes["quiet"].removing, v.nodes["quiet"].candidate})
	assert.Equal(t, [2]string{"", "a"}, [2]string{v.nodes["next"].removing, v.nodes["next"].candidate})
	assert.Equal(t, "a", v.nodes["going"].removing)
	assert.Equal(t, removalMark, v.nodes["marked"].removing)
	assert.Equal(t, "a", v.nodes["both"].removing, "the pool is told, where it is known")

	assert.Empty(t, newSnapshot(noon, nil, loads, nil, nil).nodes)
	assert.Equal(t, snapshot.Use{Sampled: recent, Now: 1, Predicted: 2, Upper: 3},
		risen(read(recent, 1, 2)), "a rising forecast stands")
	assert.Equal(t, snapshot.Use{}, risen(snapshot.Use{}))
}

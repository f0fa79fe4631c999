package forecaster

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
)

// group is the PredictedMetrics of one scale target. Their decisions are joined once a round, so
// that a read costs the same however many there are: anybody may create them.
type group struct {
	replicas atomic.Int64 // that the target is set to, as last read for any of them; 0: not known
	combined atomic.Pointer[snapshot.Combined]

	mu    sync.Mutex // held while they are joined, so that the newest result stays
	feeds []*Feed
}

func (g *group) add(f *Feed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.feeds = append(g.feeds, f)
	g.joinLocked()
}

// remove returns whether no feed is left.
func (g *group) remove(f *Feed) (empty bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.feeds = slices.DeleteFunc(g.feeds, func(x *Feed) bool { return x == f })
	g.joinLocked()
	return len(g.feeds) == 0
}

func (g *group) join() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joinLocked()
}

func (g *group) joinLocked() {
	all := make([]*snapshot.Snapshot, 0, len(g.feeds))
	for _, f := range g.feeds {
		if !f.dryRun() {
			all = append(all, f.published.Load())
		}
	}
	c := snapshot.Combine(all)
	g.combined.Store(&c)
}

// decision returns the joint decision of the last round for the replicas of now.
func (g *group) decision() snapshot.Combined { return g.combined.Load().Hold(int(g.replicas.Load())) }

package instances

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRosterFindsInstancesByPodAndTime(t *testing.T) {
	now := at(100)
	tr := NewTracker(Options{Now: func() time.Time { return now }})
	fleet := tr.Follow(metric, "shop", selector(t, "app=checkout"), nil)
	r := NewRoster(fleet)
	find := func(pod string, s float64) string {
		id, _ := r.Find(pod, at(s).UnixMilli())
		return id
	}
	_, ok := r.Find("a", 0)
	assert.False(t, ok, "nobody is there yet")

	tr.OnAdd(podWith(readyAt(10)), false)
	assert.Equal(t, "uid-a", find("a", 5), "a reading from before the readiness is of the first instance")
	assert.Equal(t, "uid-a", find("a", 50))

	ready, unready, again := podWith(readyAt(10)), podWith(unreadyAt(60)), podWith(readyAt(70))
	tr.OnUpdate(ready, unready)
	assert.Equal(t, "uid-a", find("a", 65), "a late reading is of the instance that has ended")
	assert.Empty(t, r.Active())
	tr.OnUpdate(unready, again)
	assert.Equal(t, "uid-a", find("a", 65))
	assert.Equal(t, "uid-a/2", find("a", 71))

	tr.OnDelete(again)
	tr.OnAdd(podWith(uid("uid-b"), readyAt(90)), false)
	assert.Equal(t, "uid-a/2", find("a", 80), "a StatefulSet gives a name to pods one after the other")
	assert.Equal(t, "uid-b", find("a", 95))

	tr.OnAdd(podWith(named("0"), uid("uid-0"), readyAt(95)), false)
	assert.Equal(t, []string{"0", "a"}, []string{r.Active()[0].Pod.Name, r.Active()[1].Pod.Name})

	tr.Forget(metric)
	_, ok = r.Find("a", at(95).UnixMilli())
	assert.False(t, ok, "a fleet that is forgotten is empty")
	r.Close()
}

package podtracker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPodIndexFindsInstancesByPodAndTime(t *testing.T) {
	now := at(100)
	tr := NewTracker(Options{Now: func() time.Time { return now }})
	fleet := tr.Follow(metric, "shop", selector(t, "app=checkout"))
	r := NewPodIndex(fleet)
	find := func(pod string, s float64) string {
		id, _ := r.Find(pod, at(s).UnixMilli())
		return id
	}
	_, ok := r.Find("a", 0)
	assert.False(t, ok, "no one is there yet")

	tr.Update(podWith(readyAt(10)))
	assert.Equal(t, "uid-a", find("a", 5), "a reading from before the readiness is of the first instance")
	assert.Equal(t, "uid-a", find("a", 50))

	unready, again := podWith(unreadyAt(60)), podWith(readyAt(70))
	tr.Update(unready)
	assert.Equal(t, "uid-a", find("a", 65), "a late reading is of the instance that has ended")
	assert.Empty(t, r.Active())
	tr.Update(again)
	assert.Equal(t, "uid-a", find("a", 65))
	assert.Equal(t, "uid-a/2", find("a", 71))

	tr.Delete(again)
	tr.Update(podWith(uid("uid-b"), readyAt(90)))
	assert.Equal(t, "uid-a/2", find("a", 80), "a StatefulSet gives a name to pods one after the other")
	assert.Equal(t, "uid-b", find("a", 95))

	tr.Update(podWith(named("0"), uid("uid-0"), readyAt(95)))
	assert.Equal(t, []string{"0", "a"}, []string{r.Active()[0].Pod.Name, r.Active()[1].Pod.Name})

	tr.Forget(metric)
	_, ok = r.Find("a", at(95).UnixMilli())
	assert.False(t, ok, "a fleet that is forgotten is empty")
	r.Close()
}

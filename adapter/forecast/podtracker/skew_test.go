package podtracker

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The times of changes that are seen at once are those of this process, where the clock of who records
// them is minutes off. How long a pod took to start is measured by the other clock alone.
func TestTimesOfAnotherClock(t *testing.T) {
	now := at(600)
	tracker := NewTracker(Options{Now: func() time.Time { return now }})
	f := tracker.Follow(metric, "shop", selector(t, "app=checkout"))
	s := &store{watcher: NewWatcher(tracker, nil)}
	require.NoError(t, s.Update(podWith()))
	require.NoError(t, s.Update(podWith(readyAt(540))))
	now = at(601)
	require.NoError(t, s.Update(podWith(readyAt(540), ip("10.0.0.2"))))
	assert.Equal(t, at(600), f.Active()[0].Start)
	assert.Equal(t, []Startup{{Created: at(0), Ready: at(540)}}, f.Startups())
	now = at(700)
	require.NoError(t, s.Update(podWith(readyAt(540), terminating(640, 30))))
	assert.Equal(t, at(700), f.Instances(time.Time{})[0].End)

	require.NoError(t, s.Update(podWith(named("b"))))
	require.NoError(t, s.Update(podWith(named("c"))))
	require.NoError(t, s.Update(podWith(named("c"), readyAt(650))))
	s.Touch(errors.New("connection refused"))
	require.NoError(t, s.Update(podWith(named("b"), readyAt(650))))
	assert.Equal(t, at(650), f.Active()[0].Start, "it is seen late")
	list := []any{podWith(named("b"), readyAt(650)), podWith(named("c"), readyAt(650))}
	require.NoError(t, s.Replace(list, "9"))
	assert.Equal(t, "uid-c", f.Active()[1].ID, "a list shows it as it was")
	assert.Equal(t, at(700), f.Active()[1].Start)
}

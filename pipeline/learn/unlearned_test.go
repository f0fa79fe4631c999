package learn

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Loads at unlearned times do not change the learned state, however odd they are; later loads are learned as usual.
func TestWhatIsUnlearnedTeachesNothing(t *testing.T) {
	p := learningParams()
	usual := noisy(4, func(s int64) float64 { return 4 + 3*math.Sin(float64(s)/600) })
	const begins, ends = 4 * 3600, 9 * 3600
	holiday := func(ms int64) bool { return ms >= (midnight+begins)*1000 && ms < (midnight+ends)*1000 }
	see := func(past *Learned, from, to int64, load secondly) {
		for s := from; s < to; s++ {
			past.addUnless((midnight+s)*1000, load(s), p, holiday)
		}
	}
	before := NewLearned(p)
	see(before, 0, begins+5, usual) // the last step before is complete with the first load after it
	var after []*Learned
	for _, odd := range []secondly{usual, bursts(5, 600), func(int64) float64 { return 0 }} {
		past := before.Clone()
		see(past, begins+5, ends, odd)
		require.Equal(t, before.learnedAlone(), past.learnedAlone())
		require.InDelta(t, before.Known().Seconds(), past.Known().Seconds(), 1)
		after = append(after, past)
	}
	see(after[1], ends, ends+4*3600, usual)
	assert.Greater(t, after[1].Known(), before.Known()+3*time.Hour)
	assert.NotEqual(t, before.learnedAlone(), after[1].learnedAlone())
}

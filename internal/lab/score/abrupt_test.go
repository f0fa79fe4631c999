package score_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/score"
)

// Ten pods have enough at a load of 5, and new ones take two minutes.
func TestAbruptIsToldFromWhatCouldBeForeseen(t *testing.T) {
	jump := func(from, to float64, at int) func(i int) float64 {
		return func(i int) float64 { return from + (to-from)*indicator(i >= at) }
	}
	for name, test := range map[string]struct {
		load func(i int) float64
		want score.Abrupt
	}{
		"enough": {func(int) float64 { return 4 }, score.Abrupt{}},
		"one second in a minute": {func(i int) float64 { return 4 + 2*indicator(i%60 == 7) },
			score.Abrupt{MomentaryMinutes: 10. / 60}},
		"a burst of ten seconds": {func(i int) float64 { return 3 + 3*indicator(i/10 == 30) },
			score.Abrupt{MomentaryMinutes: 10. / 60}},
		"a rise by 1.5 in two minutes": {func(i int) float64 { return 4.5 + 2.25*min(1, max(0, float64(i-300)/120)) },
			score.Abrupt{}},
		"a jump":                     {jump(3, 6, 300), score.Abrupt{SuddenMinutes: (120 + 5) / 60.}},
		"a jump by a third":          {jump(4.5, 6, 300), score.Abrupt{}},
		"a jump in the first minute": {jump(3, 6, 50), score.Abrupt{}},
		"a jump from nothing":        {jump(0, 6, 300), score.Abrupt{SuddenMinutes: (120 + 10) / 60.}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &lab.Record{}
			for i := range 600 {
				r.Seconds = append(r.Seconds, lab.Second{Offered: test.load(i), Ready: 10})
			}
			a := score.OfAbrupt(r, 0.5, 2*time.Minute)
			assert.InDelta(t, test.want.MomentaryMinutes, a.MomentaryMinutes, 1e-9, "momentary")
			assert.InDelta(t, test.want.SuddenMinutes, a.SuddenMinutes, 1e-9, "sudden")
		})
	}
	assert.Zero(t, score.OfAbrupt(&lab.Record{}, 0.5, time.Second))
}

func indicator(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

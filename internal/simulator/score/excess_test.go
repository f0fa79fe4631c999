package score_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/internal/simulator"
	"github.com/foresail/foresail/internal/simulator/score"
)

func TestExcessHasReasons(t *testing.T) {
	const start = 30 // until means of 15 s are two thirds of the way up, 6 or 11 s more
	for name, test := range map[string]struct {
		load func(i int) float64 // of ten pods at 0.5
		want score.Excess
	}{
		"enough":                    {func(int) float64 { return 4 }, score.Excess{}},
		"one second in a minute":    {func(i int) float64 { return 4 + 2*indicator(i%60 == 7) }, score.Excess{MomentaryMinutes: 10. / 60}},
		"a rise that is slow":       {func(i int) float64 { return 4 + float64(i)/200 }, score.Excess{}},
		"a jump":                    {func(i int) float64 { return 3 + 3*indicator(i >= 300) }, score.Excess{SuddenMinutes: (start + 6) / 60.}},
		"a jump by a third":         {func(i int) float64 { return 4.5 + 1.5*indicator(i >= 300) }, score.Excess{}},
		"a jump before it is known": {func(i int) float64 { return 3 + 3*indicator(i >= 50) }, score.Excess{}},
		"nothing before":            {func(i int) float64 { return 6 * indicator(i >= 300) }, score.Excess{SuddenMinutes: (start + 11) / 60.}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &simulator.Record{}
			for i := range 600 {
				r.Seconds = append(r.Seconds, simulator.Second{Offered: test.load(i), Ready: 10})
			}
			e := score.OfExcess(r, 0.5, start*time.Second)
			assert.InDelta(t, test.want.MomentaryMinutes, e.MomentaryMinutes, 1e-9, "momentary")
			assert.InDelta(t, test.want.SuddenMinutes, e.SuddenMinutes, 1e-9, "sudden")
		})
	}
	assert.Zero(t, score.OfExcess(&simulator.Record{}, 0.5, time.Second))
}

func indicator(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

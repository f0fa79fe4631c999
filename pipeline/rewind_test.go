package pipeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/pipeline"
)

// A load that jumps each night is known to, after the clock was set back past midnight, whether or not
// Rewind is called.
func TestJumpsOutliveAClockThatIsSetBack(t *testing.T) {
	p := learningParams()
	load := noisy(5, func(s int64) float64 {
		if at := floorMod(s, ofDay); 1800 <= at && at < 5400 {
			return 30
		}
		return 5
	})
	for name, rewind := range map[string]func(*pipeline.Learned, int64){
		"rewound":     func(past *pipeline.Learned, s int64) { past.Rewind((midnight + s) * 1000) },
		"not rewound": func(*pipeline.Learned, int64) {},
	} {
		past := pipeline.NewLearned(&p)
		follow(past, p, 0, 3*ofDay+3600, load)
		known := past.Known()
		back := 3*ofDay - 3600
		rewind(past, back)
		follow(past, p, back, 3*ofDay+1790, load)
		assert.GreaterOrEqual(t, past.Known(), known-2*time.Hour, name)
		assert.Greater(t, foretell(t, p, past, 3*ofDay+1790, load).PlannedLoad, 25.0, name)
	}
}

// A clock that was ahead for a while leaves unknown what it passed over, and nothing else.
func TestWhatIsKnownOutlivesAClockThatWasAhead(t *testing.T) {
	p := learningParams()
	load := noisy(6, func(int64) float64 { return 5 })
	past := pipeline.NewLearned(&p)
	follow(past, p, 0, ofDay/2, load)
	known := past.Known()
	follow(past, p, ofDay/2+7200, 2*ofDay+7800, load)
	follow(past, p, ofDay/2+600, 2*ofDay+1200, load)
	assert.GreaterOrEqual(t, past.Known(), known-10*time.Minute)
}

// What was learned of a load that was not followed for more than a week is not of use.
func TestWhatIsKnownAges(t *testing.T) {
	p := learningParams()
	load := noisy(7, func(s int64) float64 { return 5 + float64(s%600)/200 })
	past := pipeline.NewLearned(&p)
	follow(past, p, 0, ofDay/4, load)
	for after, useful := range map[int64]bool{6 * ofDay: true, 8 * ofDay: false} {
		now := ofDay/4 + after
		with, without := foretell(t, p, past, now, load), foretell(t, p, nil, now, load)
		assert.Equal(t, useful, with.MarginLearned, "after %d days", after/ofDay)
		if !useful {
			assert.Equal(t, without, with)
		}
	}
	follow(past, p, ofDay/4+8*ofDay, ofDay/4+8*ofDay+60, load)
	assert.Less(t, past.Known(), time.Minute, "it is learned again")
}

package pipeline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/pipeline"
)

// incident is a time in which a load was not what it is: none, or not known (NaN), and the catch-up after it.
type incident struct {
	begin, lasts, catchUp int64 // s
	load                  float64
}

func (x incident) of(load secondly) secondly {
	return func(s int64) float64 {
		switch after := s - x.begin; {
		case 0 <= after && after < x.lasts:
			return x.load
		case x.lasts <= after && after < x.lasts+x.catchUp:
			return 2 * load(s)
		}
		return load(s)
	}
}

// followCoarsely lets a past see a load every five seconds, which are its steps.
func followCoarsely(past *pipeline.Learned, p pipeline.Params, from, to int64, load secondly) {
	for s := from; s < to; s += 5 {
		past.Add((midnight+s)*1000, load(s), p.LearnOptions())
	}
}

// overplanned returns the largest factor by which more than the load is planned for from one time to
// another, with pods that start within seconds, four or ten minutes.
func overplanned(t *testing.T, past *pipeline.Learned, p pipeline.Params, from, to int64, load secondly) float64 {
	p.HorizonMax = time.Hour
	worst := 0.0
	for s := from; s < to; s += 15 {
		follow(past, p, s-15, s, load)
		in := inputOf(past, s, load)
		for _, starts := range []time.Duration{25 * time.Second, 4 * time.Minute, 10 * time.Minute} {
			in.StartupTime = starts
			worst = max(worst, run(t, p, in).PlannedLoad/load(s))
		}
	}
	return worst
}

const noon = ofDay + ofDay/2

// incidents are those of TestIncidentsTeachNothing.
var incidents = map[string]incident{
	"outage":                  {begin: noon, lasts: 600},
	"short outage":            {begin: noon + 100, lasts: 200},
	"long outage":             {begin: noon, lasts: 7200},
	"outage with a catch-up":  {begin: noon, lasts: 600, catchUp: 300},
	"errors and a catch-up":   {begin: noon, lasts: 900, catchUp: 600, load: math.NaN()},
	"most of the load is off": {begin: noon, lasts: 600, load: 10},
}

// What happened once, an hour or a day before, was an incident: the load is not expected to come back
// again as it came back then, let alone as it caught up.
func TestIncidentsTeachNothing(t *testing.T) {
	testIncidents(t, "outage with a catch-up", "most of the load is off")
}

func testIncidents(t *testing.T, names ...string) {
	daily := noisy(11, func(s int64) float64 { return 100 + 20*math.Sin(float64(s)/float64(ofDay)*2*math.Pi) })
	for _, name := range names {
		x := incidents[name]
		for _, ago := range []int64{3600, ofDay} {
			if x.lasts >= ago {
				continue
			}
			p := learningParams()
			load := x.of(daily)
			past := pipeline.NewLearned(&p)
			from := noon + ago - 1200
			followCoarsely(past, p, noon-6*3600, from, load)
			worst := overplanned(t, past, p, from, from+1200+x.lasts+x.catchUp+600, load)
			assert.Less(t, worst, 1.25, "%s, %d minutes ago", name, ago/60)
		}
	}
}

// night is a time of each day at which a load is low.
type night struct{ from, to, low int64 } // s of the day

var nights = map[string]night{
	"two hours":           {from: 3600, to: 3 * 3600, low: 20},
	"eight hours":         {from: 0, to: 8 * 3600, low: 20},
	"two hours near zero": {from: 3600, to: 3 * 3600, low: 2},
	"ten minutes":         {from: 3*3600 - 600, to: 3 * 3600, low: 20},
}

// Nights that recur are no incidents, however short they are.
func TestNightsThatRecurAreLearned(t *testing.T) { testNights(t, "ten minutes") }

func testNights(t *testing.T, names ...string) {
	for _, name := range names {
		x := nights[name]
		p := learningParams()
		p.ReactionDelay = 215 * time.Second // four minutes ahead
		load := noisy(12, func(s int64) float64 {
			if at := floorMod(s, ofDay); x.from <= at && at < x.to {
				return float64(x.low)
			}
			return 100
		})
		past := pipeline.NewLearned(&p)
		morning := 4*ofDay + x.to
		followCoarsely(past, p, -ofDay/4, morning-120, load)
		assert.Greater(t, foretell(t, p, past, morning-120, load).PlannedLoad, 50.0, name)
	}
}

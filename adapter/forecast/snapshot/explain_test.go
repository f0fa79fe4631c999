package snapshot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

var (
	sum = regexp.MustCompile(
		`planned load (\S+) \((?:forecast|load, if its trend continues,|load now|load of the last 30s|recurring jump to) (\S+) .*margin (\S+)\)`)
	quotient = regexp.MustCompile(
		`(?:planned load (\S+) \(.*\)|(?:forecast|load, if its trend continues,) (\S+) in \S+|load now (\S+)|last 30s (\S+)|jump to (\S+) within \S+) / threshold (\S+) = (\S+) replicas`)
	missing = regexp.MustCompile(`overfilled by the load of (\S+) replica`)
	down    = regexp.MustCompile(`with the margin for scaling down (\S+)`)
)

// A reader who has the sentence and a pocket calculator comes to the same number of replicas, whatever the load does.
func TestSentenceCanBeCalculated(t *testing.T) {
	for _, method := range []pipeline.Method{pipeline.Holt, pipeline.Adaptive} {
		t.Run(string(method), func(t *testing.T) {
			p := pipeline.HoltParams()
			if method == pipeline.Adaptive {
				p = pipeline.AdaptiveParams()
			}
			p.Threshold, p.Max, p.Min, p.MaxStep = 0.7, 1000, 1, 0
			seen := map[pipeline.Reason]int{}
			decisions(t, p, func(f pipeline.Forecast) {
				s := Snapshot{Threshold: p.Threshold, Forecast: f, Decision: f.Decision}
				if f.Decision.Reason == pipeline.StillOverloaded || f.Decision.Reason == pipeline.ScaleUpPending {
					return
				}
				seen[f.Decision.Reason]++
				calculate(t, s.Explain(), f)
			})
			t.Log(seen)
			for _, reason := range []pipeline.Reason{pipeline.AboveThreshold, pipeline.Headroom, pipeline.NoNeed} {
				assert.GreaterOrEqual(t, seen[reason], 10, reason)
			}
		})
	}
}

func calculate(t *testing.T, sentence string, f pipeline.Forecast) {
	t.Helper()
	if m := sum.FindStringSubmatch(sentence); m != nil {
		assert.InDelta(t, number(t, m[1]), number(t, m[2])+number(t, m[3]), 1e-9, sentence)
	}
	m := quotient.FindStringSubmatch(sentence)
	require.NotNil(t, m, sentence)
	planned := number(t, m[1]+m[2]+m[3]+m[4]+m[5])
	required := number(t, m[7])
	assert.InDelta(t, planned/number(t, m[6]), required, 0.01, sentence)
	if m := missing.FindStringSubmatch(sentence); m != nil {
		required -= number(t, m[1]) + 0.005 // two decimals are shown
	}
	spare := down.FindStringSubmatch(sentence)
	if spare != nil {
		required = number(t, spare[1])
	}
	if count := math.Ceil(required); f.Decision.Reason == pipeline.TrendRising && f.Decision.Action == pipeline.Hold {
		assert.LessOrEqual(t, count, float64(f.Decision.Desired), sentence)
	} else if spare != nil && f.Decision.Reason == pipeline.NoNeed {
		assert.GreaterOrEqual(t, count, float64(f.Decision.Desired), sentence)
	} else {
		assert.EqualValues(t, f.Decision.Desired, count, sentence)
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return v
}

// decisions runs a pipeline over an hour of a load that walks at random, and follows what it decides.
func decisions(t *testing.T, p pipeline.Params, each func(pipeline.Forecast)) {
	t.Helper()
	forecasts, err := pipeline.New(p)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	past := pipeline.NewLearned(&p)
	const step = 1000
	load, slope, target := 2.0, 0.0, 3
	var total []float64
	var memory pipeline.Memory
	for now := int64(step); now <= 3600*step; now += step {
		slope = 0.98*slope + 0.004*random.NormFloat64()
		if load = load + slope; load < 0.5 || load > 12 {
			load, slope = min(max(load, 0.5), 12), 0
		}
		total = append(total, load*(1+0.02*random.NormFloat64()))
		if now%(5*step) != 0 || len(total) < 60 {
			continue
		}
		newest := total[max(0, len(total)-400):]
		in := pipeline.Input{Now: now, Target: target, TargetRose: pipeline.Never,
			StartupTime: 20 * time.Second, Learned: past}
		for i := range target {
			x := pipeline.Instance{ID: fmt.Sprint(i), Start: pipeline.Never}
			for k, v := range newest {
				x.Samples = append(x.Samples,
					pipeline.Sample{T: now - int64(len(newest)-1-k)*step, V: v / float64(target)})
			}
			in.Instances = append(in.Instances, x)
		}
		f, err := forecasts.RunIn(&memory, in)
		require.NoError(t, err)
		past.Learn(memory.Loads(), p.LearnOptions(), nil)
		each(f)
		target = f.Decision.Desired
	}
}

package forecaster

import (
	"bytes"
	"crypto/sha256"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

// Config is the configuration of one PredictedMetric.
type Config struct {
	Params         pipeline.Params
	MeasureStartup bool          // take T_I from the start-ups of pods
	Source         string        // the kind of source, such as pods
	Origin         string        // identifies where samples come from and whose they are
	Interval       time.Duration // how often the source reads; 0: samples are pushed
	Created        time.Time     // when the PredictedMetric was created
	Counter        bool          // samples are rates of a counter

	// NodeForecast requests a forecast of the time at which a node has started as well. NodeStartupTime is
	// how long one takes; 0: the result of Options.NodeStartupTime.
	NodeForecast    bool
	NodeStartupTime time.Duration

	Schedules *schedule.Calendar // used by one forecast at a time; nil: none

	DryRun bool // nothing may act on the forecasts

	TargetGroup, TargetKind, TargetName string // of the scale target
}

// settings are a configuration and its pipeline, nil if the spec was rejected.
type settings struct {
	Config
	pipeline *pipeline.Pipeline // run with the feed's mu held
}

// target identifies the scale target of a feed.
type target struct{ namespace, group, kind, name string }

func (c *Config) target(key types.NamespacedName) target {
	return target{key.Namespace, c.TargetGroup, c.TargetKind, c.TargetName}
}

// minReadings is the number of readings of a pod that always fit, for sources that read more often
// than forecasts are made.
const minReadings = 1000

// readings returns how many readings of one instance a window of this length may have.
func (c *Config) readings(window time.Duration) int { return max(minReadings, int(window/c.every())) }

// every returns how often an instance is read.
func (c *Config) every() time.Duration {
	if c.Interval > 0 {
		return min(c.Params.Interval, c.Interval)
	}
	return c.Params.Interval
}

// limits lets an inbox accept as many samples as a window of this length needs.
func (c *Config) limits(window time.Duration) limits {
	return limits{
		interval: c.Params.Interval, window: window, maxSamples: 2 * c.readings(window),
		values: gate.LimitsOf(&c.Params, c.Counter),
	}
}

// originOf identifies where samples come from: a load that was learned from others is of no use.
func (c *Config) originOf() []byte {
	sum := sha256.Sum256([]byte(c.Origin))
	return sum[:originSize]
}

// Checkpoint returns a checkpoint of the past load of a PredictedMetric.
func (c *Config) Checkpoint(past *pipeline.Learned) (Checkpoint, error) {
	data, err := past.MarshalBinary()
	return Checkpoint{Data: append(c.originOf(), data...), Learned: past.Known(), newest: past.Newest()}, err
}

// decode returns what a checkpoint of this PredictedMetric contains.
func (c *Config) decode(checkpoint []byte) (*pipeline.Learned, error) {
	if len(checkpoint) < originSize || !bytes.Equal(checkpoint[:originSize], c.originOf()) {
		return nil, errOther
	}
	past := new(pipeline.Learned)
	if err := past.UnmarshalBinary(checkpoint[originSize:]); err != nil {
		return nil, err
	}
	if !past.Fits(c.Params.LearnOptions()) {
		return nil, errOther
	}
	return past, nil
}

// learnedOf returns the minutes, which begin at a time (ms), as not known where learning is disabled.
func (c *Config) learnedOf(begin int64, minutes []pipeline.Minute) []pipeline.Minute {
	if c.Schedules == nil {
		return minutes
	}
	out := slices.Clone(minutes)
	for i := range out {
		if c.Schedules.Unlearned(begin + int64(i)*time.Minute.Milliseconds()) {
			out[i] = pipeline.Minute{Mean: math.NaN()}
		}
	}
	return out
}

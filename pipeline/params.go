package pipeline

import (
	"math"
	"time"

	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/judge"
	"github.com/foresail/foresail/pipeline/learn"
	"github.com/foresail/foresail/pipeline/predict"
	"github.com/foresail/foresail/pipeline/redistribute"
	"github.com/foresail/foresail/pipeline/series"
)

// Params configures a pipeline. Field comments give the paper's symbol; HoltParams returns the defaults.
type Params struct {
	Method    Method
	Model     Model
	Threshold float64 // τ, per instance, in units of the metric
	// N_min, N_max; Min can be 0 only with Whole, because without instances there is nothing else to
	// read
	Min, Max int

	// Whole means that the load is measured as a whole, as Input.Total: the requests at a gateway, or the
	// length of a queue. Model must be Linear then, and Threshold is the load that one instance can carry.
	Whole bool
	// Activation is the load up to which no instance is needed, if Min is 0.
	Activation float64

	Interval time.Duration // Δt, the spacing of the time grid
	Window   time.Duration // W, the length of the window of samples

	// Counted means that the load is counted, like the requests of pods, and not measured. It has no noise, and
	// requests that arrive at once are one event. The adaptive method uses the newest load as its level, and
	// extends a rise only if most of the newest ticks rose.
	Counted bool

	// WindowFollowsHorizon makes the window longer if the horizon needs it; see WindowFor.
	WindowFollowsHorizon bool

	RedistributionTimeout time.Duration // T_R; 0 counts a new instance in full at once
	RedistributionShape   float64       // κ; 0 is a straight line

	LevelUp, LevelDown float64 // α↑, α↓
	TrendUp, TrendDown float64 // β↑, β↓

	// NoiseMargin is the margin of the adaptive method without Input.Learned, in standard deviations of the
	// noise.
	NoiseMargin float64
	// Lateness is the share of the time in which the load may exceed the capacity of the requested instances at
	// Threshold. With Input.Learned, the margin of the adaptive method follows from it; 0 = the margin is
	// NoiseMargin.
	Lateness float64

	Saturation Saturation

	StartupTime       time.Duration // T_I, until the Input has a measured one
	HorizonMultiplier float64       // η
	HorizonMin        time.Duration // H_min
	HorizonMax        time.Duration // H_max
	ReactionDelay     time.Duration // D, added after the bounds: the delay until the autoscaler reads the forecast

	TrendAngle      float64       // θ_0 in degrees, of the angle whose tangent is trend/level per tick
	RiskFactor      float64       // k
	ScaleDownMargin float64       // μ
	Spillover       float64       // no instance is added for a smaller share of an instance
	MaxStep         int           // N_step; 0 = no limit
	PendingExpiry   time.Duration // how long a raised target delays scale-down while instances are missing

	StaleAfter time.Duration // older data is an error
	Cooldown   Cooldown
}

// Method is the way in which a load is forecast.
type Method string

// The forecast methods.
const (
	Holt     Method = "Holt"     // the paper's; also the meaning of the zero value
	Adaptive Method = "Adaptive" // a line through as many of the newest loads as lie on one
)

// HoltParams returns the defaults of the paper's table 8, with the reaction delay of an autoscaler that reads
// every 15 s (an HPA). Threshold and Max have no default and must be set.
func HoltParams() Params {
	return Params{
		Model: Model{Kind: Linear}, Min: 1,
		Interval: time.Second, Window: 90 * time.Second,
		RedistributionTimeout: 30 * time.Second, RedistributionShape: 1,
		LevelUp: 0.2, LevelDown: 0.1, TrendUp: 0.2, TrendDown: 0.1,
		Saturation:  Saturation{Zone: 0.02},
		StartupTime: 25 * time.Second, HorizonMultiplier: 1.2,
		HorizonMin: 10 * time.Second, HorizonMax: 40 * time.Second, ReactionDelay: 15 * time.Second,
		TrendAngle: 10, RiskFactor: 2, ScaleDownMargin: 0.3, Spillover: 0.1, MaxStep: 4,
		PendingExpiry: time.Minute, StaleAfter: 30 * time.Second,
		Cooldown: Cooldown{UpAfterUp: 5 * time.Second, UpAfterDown: 5 * time.Second,
			DownAfterUp: 3 * time.Minute, DownAfterDown: time.Minute},
	}
}

// AdaptiveParams returns the defaults of the adaptive method. Its window is long enough to contain earlier
// peaks and grows with the horizon, and the horizon follows the startup time. It has none of the margins and
// limits that keep Holt's method from reacting to noise and overshooting. Threshold and Max must be set.
func AdaptiveParams() Params {
	p := HoltParams()
	p.Method, p.NoiseMargin, p.Lateness = Adaptive, 0.8, 0.01
	p.Window, p.WindowFollowsHorizon = 5*time.Minute, true
	p.HorizonMultiplier, p.HorizonMax = 1, 20*time.Minute
	p.ScaleDownMargin, p.MaxStep = 0.05, 0
	p.Cooldown.DownAfterUp, p.Cooldown.DownAfterDown = 0, 0 // this method does not scale down because of noise
	return p
}

// WindowFor returns the length of the window if instances take startupTime to start; 0 means
// Params.StartupTime. Older samples do not count, except the newest of them.
func (p *Params) WindowFor(startupTime time.Duration) time.Duration {
	h := p.horizonOptions()
	r := p.reach(&h, startupTime)
	return r.Window
}

// HorizonFor returns the horizon if instances take startupTime to start; 0 means Params.StartupTime.
func (p *Params) HorizonFor(startupTime time.Duration) time.Duration {
	h := p.horizonOptions()
	r := p.reach(&h, startupTime)
	return series.Duration(r.Ahead)
}

// ReplacementGap returns how long the samples do not add up to the load after all instances were replaced at
// once: the old ones are no longer read, and the new ones have not taken over yet. It is 0 with a method that
// holds the load meanwhile.
func (p *Params) ReplacementGap() time.Duration {
	if p.Method == Adaptive {
		return 0
	}
	return p.RedistributionTimeout
}

// reach returns the reach for a measured startup time, or for the assumed one if none is measured.
func (p *Params) reach(h *predict.HorizonOptions, measured time.Duration) predict.Reach {
	if measured <= 0 {
		return h.Reach(p.StartupTime)
	}
	return h.Reach(measured)
}

// options holds the options of each stage.
type options struct {
	redistribute redistribute.Options
	horizon      predict.HorizonOptions
	holt         predict.Holt
	adaptive     predict.LineFit
	decide       decide.Options
	learn        learn.Options
}

// setBounds replaces the bounds of the decision.
func (o *options) setBounds(minCount, maxCount int, lateness float64) {
	o.decide.Min, o.decide.Max, o.decide.Lateness = minCount, maxCount, lateness
	o.learn.Lateness = lateness
}

// stageOptions derives the options of each stage.
func (p *Params) stageOptions() options {
	return options{
		redistribute: redistribute.Options{
			Model: p.Model, Timeout: p.RedistributionTimeout, Shape: p.RedistributionShape, Saturation: p.Saturation,
		},
		horizon: p.horizonOptions(),
		holt: predict.Holt{
			LevelUp: p.LevelUp, LevelDown: p.LevelDown, TrendUp: p.TrendUp, TrendDown: p.TrendDown,
			Model: p.Model, Saturation: p.Saturation,
		},
		adaptive: predict.LineFit{Counted: p.Counted},
		decide: decide.Options{
			Adaptive: p.Method == Adaptive, Model: p.Model, Threshold: p.Threshold,
			Min: p.Min, Max: p.Max, Activation: p.Activation,
			TrendLimit: math.Tan(p.TrendAngle * math.Pi / 180),
			RiskFactor: p.RiskFactor, ScaleDownMargin: p.ScaleDownMargin,
			Spillover: p.Spillover, MaxStep: p.MaxStep,
			NoiseMargin: p.NoiseMargin, Lateness: p.Lateness,
		},
		learn: p.LearnOptions(),
	}
}

// horizonOptions derives the options of the horizon.
func (p *Params) horizonOptions() predict.HorizonOptions {
	return predict.HorizonOptions{
		Multiplier: p.HorizonMultiplier, Min: p.HorizonMin, Max: p.HorizonMax, ReactionDelay: p.ReactionDelay,
		Window: p.Window, Interval: p.Interval,
		Adaptive: p.Method == Adaptive, WindowFollows: p.WindowFollowsHorizon,
	}
}

// LearnOptions returns the options for learning from loads that are read with these parameters.
func (p *Params) LearnOptions() learn.Options {
	return learn.Options{
		Model: p.Model, Whole: p.Whole, Threshold: p.Threshold, Lateness: p.Lateness,
		ScaleDownMargin: p.ScaleDownMargin, Interval: p.Interval,
		Unused: p.Method != Adaptive || p.Counted,
	}
}

// NewLearned returns an empty history.
func NewLearned(p *Params) *Learned { return learn.NewLearned(p.LearnOptions()) }

// NewStartupTime returns the startup time estimate of a method; initial is used until start-ups are measured.
func NewStartupTime(m Method, initial time.Duration) *StartupTime {
	if m == Adaptive {
		return judge.NewStartupTime(initial)
	}
	return judge.NewDampedStartupTime(initial)
}

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

// Params configures a pipeline. Field comments give the paper's symbol; HoltParams gives the defaults.
type Params struct {
	Method    Method
	Model     Model
	Threshold float64 // τ, per instance, in units of the metric
	Min, Max  int     // N_min, N_max; Min 0 only with Whole: without instances there is nothing else to read

	// Whole says that the load is measured as a whole, as Input.Total: the requests at a gateway, or the length of a
	// queue. Model is Linear then, and Threshold is what one instance can carry.
	Whole bool
	// Activation is the load up to which there need not be any instance, if Min is 0.
	Activation float64

	Interval time.Duration // Δt, the spacing of the time grid
	Window   time.Duration // W, how far back a forecast looks

	// Counted says that the load is counted, as the requests of pods are, and not measured: it has no noise, and what
	// arrives at once is one event. The adaptive method takes the newest load as it is, and carries a rise on that most
	// of the newest ticks share.
	Counted bool

	// WindowFollowsHorizon makes the window longer where the horizon needs it; see WindowFor.
	WindowFollowsHorizon bool

	RedistributionTimeout time.Duration // T_R; 0 counts a new instance in full at once
	RedistributionShape   float64       // κ; 0 is a straight line

	LevelUp, LevelDown float64 // α↑, α↓
	TrendUp, TrendDown float64 // β↑, β↓

	// NoiseMargin is the margin of the adaptive method without an Input.Past, in standard deviations of the load's
	// noise.
	NoiseMargin float64
	// Lateness is the share of the time in which the load may exceed what the ordered instances can hold at Threshold.
	// The margin of the adaptive method follows from it where there is an Input.Past; 0 = it is NoiseMargin.
	Lateness float64

	Saturation Saturation

	StartupTime       time.Duration // T_I, until a measured one is given with the Input
	HorizonMultiplier float64       // η
	HorizonMin        time.Duration // H_min
	HorizonMax        time.Duration // H_max
	ReactionDelay     time.Duration // D, added after the bounds: how late the actuator reads the forecast

	TrendAngle      float64       // θ_0 in degrees, of the angle whose tangent is trend/level per tick
	RiskFactor      float64       // k
	ScaleDownMargin float64       // μ
	Spillover       float64       // no instance is added for a smaller share of one
	MaxStep         int           // N_step; 0 = no limit
	PendingExpiry   time.Duration // how long a raised target delays scale-down while instances are missing

	StaleAfter time.Duration // older data is an error
	Cooldown   Cooldown
}

// Method names a way to forecast from the loads of the window.
type Method string

// The methods there are.
const (
	Holt     Method = "Holt"     // the paper's; the zero value means it as well
	Adaptive Method = "Adaptive" // a line through as many of the newest loads as lie on one
)

// HoltParams returns the defaults of the paper's table 8, with the reaction delay of an actuator that reads
// every 15 s (an HPA). Threshold and Max have none and must be set.
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
		Cooldown: Cooldown{UpAfterUp: 5 * time.Second, UpAfterDown: 5 * time.Second, DownAfterUp: 3 * time.Minute, DownAfterDown: time.Minute},
	}
}

// AdaptiveParams returns the defaults of the adaptive method. Its window is long enough to show earlier peaks and grows
// with the horizon, the horizon follows the startup time, and there are none of the margins and limits that keep Holt's
// method from acting on noise and overshooting. Threshold and Max must be set.
func AdaptiveParams() Params {
	p := HoltParams()
	p.Method, p.NoiseMargin, p.Lateness = Adaptive, 0.8, 0.01
	p.Window, p.WindowFollowsHorizon = 5*time.Minute, true
	p.HorizonMultiplier, p.HorizonMax = 1, 20*time.Minute
	p.ScaleDownMargin, p.MaxStep = 0.05, 0
	p.Cooldown.DownAfterUp, p.Cooldown.DownAfterDown = 0, 0 // it falls for reasons, not for noise
	return p
}

// WindowFor returns how far back a forecast looks when instances take startupTime to start; 0 means Params.StartupTime.
// Samples from before this window do not count, except the newest of them.
func (p *Params) WindowFor(startupTime time.Duration) time.Duration {
	h := p.horizon()
	r := p.reach(&h, startupTime)
	return r.Window
}

// HorizonFor returns how far ahead a forecast looks when instances take startupTime to start; 0 means
// Params.StartupTime.
func (p *Params) HorizonFor(startupTime time.Duration) time.Duration {
	h := p.horizon()
	r := p.reach(&h, startupTime)
	return series.Duration(r.Ahead)
}

// ReplacementGap returns how long the samples do not add up to the load after all instances have been replaced at one
// moment: those that have ended are not read any more, and the others have not taken over yet. It is 0 with a method
// that holds the load meanwhile.
func (p *Params) ReplacementGap() time.Duration {
	if p.Method == Adaptive {
		return 0
	}
	return p.RedistributionTimeout
}

// reach is that of a measured startup time, or of the one that is assumed until one is measured.
func (p *Params) reach(h *predict.Horizon, measured time.Duration) predict.Reach {
	if measured <= 0 {
		return h.Reach(p.StartupTime)
	}
	return h.Reach(measured)
}

// options are those of each stage.
type options struct {
	redistribute redistribute.Options
	horizon      predict.Horizon
	holt         predict.Holt
	adaptive     predict.Adaptive
	decide       decide.Options
	learn        learn.Options
}

// bound replaces the bounds of a decision.
func (o *options) bound(fewest, most int, lateness float64) {
	o.decide.Min, o.decide.Max, o.decide.Lateness = fewest, most, lateness
	o.learn.Lateness = lateness
}

func (p *Params) options() options {
	return options{
		redistribute: redistribute.Options{
			Model: p.Model, Timeout: p.RedistributionTimeout, Shape: p.RedistributionShape, Saturation: p.Saturation,
		},
		horizon: p.horizon(),
		holt: predict.Holt{
			LevelUp: p.LevelUp, LevelDown: p.LevelDown, TrendUp: p.TrendUp, TrendDown: p.TrendDown,
			Model: p.Model, Saturation: p.Saturation,
		},
		adaptive: predict.Adaptive{Counted: p.Counted},
		decide: decide.Options{
			Adaptive: p.Method == Adaptive, Model: p.Model, Threshold: p.Threshold,
			Min: p.Min, Max: p.Max, Activation: p.Activation,
			TrendLimit: math.Tan(p.TrendAngle * math.Pi / 180),
			RiskFactor: p.RiskFactor, ScaleDownMargin: p.ScaleDownMargin,
			Spillover: p.Spillover, MaxStep: p.MaxStep,
			NoiseMargin: p.NoiseMargin, Lateness: p.Lateness,
		},
		learn: p.Learning(),
	}
}

func (p *Params) horizon() predict.Horizon {
	return predict.Horizon{
		Multiplier: p.HorizonMultiplier, Min: p.HorizonMin, Max: p.HorizonMax, ReactionDelay: p.ReactionDelay,
		Window: p.Window, Interval: p.Interval,
		Adaptive: p.Method == Adaptive, Follows: p.WindowFollowsHorizon,
	}
}

// Learning returns the options of a [Past] of loads that are read by these parameters.
func (p *Params) Learning() learn.Options {
	return learn.Options{
		Model: p.Model, Whole: p.Whole, Threshold: p.Threshold, Lateness: p.Lateness,
		ScaleDownMargin: p.ScaleDownMargin, Interval: p.Interval,
		Unused: p.Method != Adaptive || p.Counted,
	}
}

// NewPast returns the past of a load of which nothing is known.
func NewPast(p *Params) *Past { return learn.NewPast(p.Learning()) }

// NewStartupTime returns the estimate of the startup time for a method, from an assumed value.
func NewStartupTime(m Method, initial time.Duration) *StartupTime {
	if m == Adaptive {
		return judge.NewStartupTime(initial)
	}
	return judge.NewDampedStartupTime(initial)
}

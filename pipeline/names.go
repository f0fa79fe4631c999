package pipeline

import (
	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/judge"
	"github.com/foresail/foresail/pipeline/learn"
	"github.com/foresail/foresail/pipeline/predict"
	"github.com/foresail/foresail/pipeline/series"
)

// These are the nouns of an Input and of Params, for callers that import this package alone.
type (
	// Sample is a measurement.
	Sample = series.Sample
	// Instance carries a share of the load.
	Instance = series.Instance
	// Model relates the metric of an instance to the load.
	Model = series.Model
	// ModelKind names a metric model.
	ModelKind = series.ModelKind
	// Saturation describes a metric with a maximum.
	Saturation = series.Saturation
)

// Never is the time of an event that has not happened.
const Never = series.Never

// The metric models there are.
const (
	Linear    = series.Linear
	Overhead  = series.Overhead
	Quadratic = series.Quadratic
)

// These are the parts of a Forecast, and of Params.
type (
	// Decision is the result of stage five.
	Decision = decide.Decision
	// Direction is that of a trend.
	Direction = decide.Direction
	// Action is the change of the target that a decision makes.
	Action = decide.Action
	// Reason explains a decision.
	Reason = decide.Reason
	// Need leads from a load to the number of instances.
	Need = decide.Need
	// Basis names the source of the load in a Need.
	Basis = decide.Basis
	// Cooldown is the time between two decisions that change the target.
	Cooldown = decide.Cooldown
	// History holds the times that cooldowns are counted from.
	History = decide.History
	// HorizonLimit names the bound that shortens a horizon.
	HorizonLimit = predict.HorizonLimit
)

// The directions of a trend, and what a decision may do.
const (
	Rising  = decide.Rising
	Falling = decide.Falling
	Steady  = decide.Steady

	ScaleUp   = decide.ScaleUp
	ScaleDown = decide.ScaleDown
	Hold      = decide.Hold
)

// The reasons of decisions.
const (
	TrendRising     = decide.TrendRising
	AboveThreshold  = decide.AboveThreshold
	Headroom        = decide.Headroom
	BelowMinimum    = decide.BelowMinimum
	AtMaximum       = decide.AtMaximum
	NoNeed          = decide.NoNeed
	ScaleUpPending  = decide.ScaleUpPending
	StillOverloaded = decide.StillOverloaded
	CoolingDown     = decide.CoolingDown
	PodsUnseen      = decide.PodsUnseen
	Activated       = decide.Activated
	Idle            = decide.Idle
)

// The loads that instances may be needed for.
const (
	FromForecast = decide.FromForecast
	FromPresent  = decide.FromPresent
	FromRecent   = decide.FromRecent
	FromTrend    = decide.FromTrend
	FromJump     = decide.FromJump
	FromDamped   = decide.FromDamped
)

// The limits of a horizon.
const (
	Unlimited       = predict.Unlimited
	LimitedByMax    = predict.LimitedByMax
	LimitedByWindow = predict.LimitedByWindow
)

// Largest returns the index of the decision that several metrics of one target come to.
func Largest(decisions []Decision) int { return decide.Largest(decisions) }

// These outlive a run.
type (
	// Past is the history of a load.
	Past = learn.Past
	// Minute is the mean of a load over a minute.
	Minute = learn.Minute
	// Accuracy compares forecasts with the loads that came.
	Accuracy = judge.Accuracy
	// Score is the result of that comparison.
	Score = judge.Score
	// StartupTime estimates how long instances take to start.
	StartupTime = judge.StartupTime
)

// The version and the size of checkpoints of a [Past].
const (
	CheckpointVersion = learn.CheckpointVersion
	MaxCheckpoint     = learn.MaxCheckpoint
)

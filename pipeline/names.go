package pipeline

import (
	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/judge"
	"github.com/foresail/foresail/pipeline/learn"
	"github.com/foresail/foresail/pipeline/predict"
	"github.com/foresail/foresail/pipeline/series"
)

// These types of an Input and of Params are repeated here for callers that import only this package.
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

// The metric models.
const (
	Linear    = series.Linear
	Overhead  = series.Overhead
	Quadratic = series.Quadratic
)

// These types are parts of a Forecast and of Params.
type (
	// Decision is the result of stage five.
	Decision = decide.Decision
	// Direction is the direction of a trend.
	Direction = decide.Direction
	// Action is the change of the target that a decision makes.
	Action = decide.Action
	// Reason explains a decision.
	Reason = decide.Reason
	// Need explains how the number of instances follows from a load.
	Need = decide.Need
	// Basis is the source of the load in a Need.
	Basis = decide.Basis
	// Cooldown is the time between two decisions that change the target.
	Cooldown = decide.Cooldown
	// ScalingTimes holds the times from which cooldowns are counted.
	ScalingTimes = decide.ScalingTimes
	// HorizonLimit is the setting that shortens a horizon.
	HorizonLimit = predict.HorizonLimit
)

// The directions of a trend, and the actions of a decision.
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

// The loads that a number of instances may be planned for.
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

// Largest returns the index of the decision that applies to a target with several metrics: the one with the
// largest count.
func Largest(decisions []Decision) int { return decide.Largest(decisions) }

// These types keep state between runs.
type (
	// Learned is the history of a load, and the state learned from it.
	Learned = learn.Learned
	// Minute is the mean of a load over a minute.
	Minute = learn.Minute
	// Accuracy compares forecasts with the loads that followed.
	Accuracy = judge.Accuracy
	// Score is the result of that comparison.
	Score = judge.Score
	// StartupTime estimates how long instances take to start.
	StartupTime = judge.StartupTime
)

// The version and the maximum size of checkpoints of a [Learned].
const (
	CheckpointVersion = learn.CheckpointVersion
	MaxCheckpoint     = learn.MaxCheckpoint
)

package pipeline

import (
	"github.com/foresail/foresail/pipeline/decide"
	"github.com/foresail/foresail/pipeline/judge"
	"github.com/foresail/foresail/pipeline/learn"
	"github.com/foresail/foresail/pipeline/predict"
	"github.com/foresail/foresail/pipeline/series"
)

// The nouns of an Input and of Params, for readers that know this package alone.
type (
	Sample     = series.Sample
	Instance   = series.Instance
	Model      = series.Model
	ModelKind  = series.ModelKind
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

// The parts of a Forecast, and of Params.
type (
	Decision     = decide.Decision
	Direction    = decide.Direction
	Action       = decide.Action
	Reason       = decide.Reason
	Need         = decide.Need
	Basis        = decide.Basis
	Cooldown     = decide.Cooldown
	History      = decide.History
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

// Types that outlive a run.
type (
	Past        = learn.Past
	Minute      = learn.Minute
	Accuracy    = judge.Accuracy
	Score       = judge.Score
	StartupTime = judge.StartupTime
)

// The version and the size of checkpoints of a [Past].
const (
	CheckpointVersion = learn.CheckpointVersion
	MaxCheckpoint     = learn.MaxCheckpoint
)

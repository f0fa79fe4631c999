package compare

import (
	"context"
	"fmt"

	"github.com/foresail/foresail/internal/lab/score"
	"github.com/foresail/foresail/internal/lab/world/queue"
)

// Variant is a model of pods that a finding should survive.
type Variant struct {
	Name   string
	Result *Result
}

// otherModels are the models of pods beside the fitted one.
func otherModels() []queue.Variant { return queue.Variants()[1:] }

// PlayVariants plays a comparison, of which the result under the fitted model is known, under the
// other models there are; pods take as long to start. done is called after each run. When the
// context ends the variants that were done are returned, with the error of the context.
func PlayVariants(ctx context.Context, c Config, fitted *Result, done func(Run)) ([]Variant, error) {
	variants := []Variant{{Name: queue.Variants()[0].Name, Result: fitted}}
	startup, spread := c.Model.Startup, c.Model.StartupSpread
	for _, v := range otherModels() {
		c.Model = v.Model
		c.Model.Startup, c.Model.StartupSpread = startup, spread
		r, err := Play(ctx, c, done)
		if err != nil {
			return variants, err
		}
		variants = append(variants, Variant{Name: v.Name, Result: r})
	}
	return variants, nil
}

// VariantRuns returns how many runs [PlayVariants] plays.
func VariantRuns(c Config) int { return c.Runs() * len(otherModels()) }

func success(s ScalerRuns) float64 { return s.Interval(score.Success()).Mean }

// placeOf is how many scalers do better, plus one.
func placeOf(o Outcome, i int) int {
	own, place := success(o.Scalers[i]), 1
	for _, s := range o.Scalers {
		if success(s) > own {
			place++
		}
	}
	return place
}

// reversed counts the findings of one outcome that another contradicts.
func reversed(fitted, other Outcome) string {
	findings, turned := 0, 0
	for i := range fitted.Scalers {
		for j := range i {
			there, here := better(fitted, i, j), better(other, i, j)
			if there.Clear() {
				findings++
				if here.Clear() && (there.Mean > 0) != (here.Mean > 0) {
					turned++
				}
			}
		}
	}
	return fmt.Sprintf("%d of %d", turned, findings)
}

// better is how much more success one scaler has than another.
func better(o Outcome, i, j int) score.Interval {
	return score.Difference(o.Scalers[i].Values(score.Success()), o.Scalers[j].Values(score.Success()))
}

package compare

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

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

// PlayVariants plays a comparison, of which the result under the fitted model is known, under the other models there are;
// pods take as long to start. done is called after each run. When the context ends the variants that were done are
// returned, with the error of the context.
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
func (c Config) VariantRuns() int { return c.Runs() * len(otherModels()) }

// WriteVariants writes the success of each scaler under each model, with its place, and how many findings do not survive:
// pairs of scalers of which one is better without doubt under the fitted model, and the other under this one.
func WriteVariants(w io.Writer, variants []Variant) error {
	var text strings.Builder
	for p, fitted := range variants[0].Result.Outcomes {
		fmt.Fprintf(&text, "\n%s: success in %% under other models of pods, and place\n", fitted.Profile)
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		header := []string{"SCALER"}
		reversals := []string{"reversed findings"}
		for _, v := range variants {
			header = append(header, v.Name)
			reversals = append(reversals, reversed(fitted, v.Result.Outcomes[p]))
		}
		writeRow(table, header)
		for i, s := range fitted.Scalers {
			row := []string{s.Name}
			for _, v := range variants {
				o := v.Result.Outcomes[p]
				row = append(row, fmt.Sprintf("%.2f (%d)", 100*success(o.Scalers[i]), o.place(i)))
			}
			writeRow(table, row)
		}
		writeRow(table, reversals)
		_ = table.Flush() // a strings.Builder takes all
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// WriteVariantsCSV writes a line for each profile, scaler and model.
func WriteVariantsCSV(w io.Writer, variants []Variant) error {
	rows := [][]string{{"profile", "scaler", "model", "seeds", "success", "success_half", "place"}}
	for p, fitted := range variants[0].Result.Outcomes {
		for i, s := range fitted.Scalers {
			for _, v := range variants {
				o := v.Result.Outcomes[p]
				interval := o.Scalers[i].Interval(score.Success())
				rows = append(rows, []string{
					o.Profile, s.Name, v.Name, fmt.Sprint(len(o.Seeds)),
					decimal(interval.Mean, 6), decimal(interval.Half, 6), fmt.Sprint(o.place(i)),
				})
			}
		}
	}
	return writeCSV(w, rows)
}

func success(s ScalerRuns) float64 { return s.Interval(score.Success()).Mean }

// place is how many scalers do better, plus one.
func (o Outcome) place(i int) int {
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
			there, here := fitted.better(i, j), other.better(i, j)
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
func (o Outcome) better(i, j int) score.Interval {
	return score.Difference(o.Scalers[i].Values(score.Success()), o.Scalers[j].Values(score.Success()))
}

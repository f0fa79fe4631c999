package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
)

//go:embed script.js
var k6Script []byte

const (
	requestTimeout = 10 * time.Second
	// maxUsers is how many requests k6 has under way at most. It drops those beyond.
	maxUsers = 2000
)

// k6Plan is the input of the script.
type k6Plan struct {
	Target  string    `json:"target"`
	Summary string    `json:"summary"` // file
	Lead    string    `json:"lead"`
	First   int       `json:"first"` // requests per second
	Stages  []k6Stage `json:"stages"`
	Timeout string    `json:"timeout"`
	Users   int       `json:"users"`
}

type k6Stage struct {
	Duration string `json:"duration"`
	Target   int    `json:"target"`
}

// k6PlanOf has k6 play a profile, in rates that are whole numbers, as k6 requires.
func k6PlanOf(p profile, lead time.Duration, users int) k6Plan {
	plan := k6Plan{
		Lead: lead.String(), First: whole(p.first()), Timeout: requestTimeout.String(),
		Users: users,
	}
	for i := 1; i < len(p.load); i++ {
		plan.Stages = append(plan.Stages, k6Stage{(p.load[i].At - p.load[i-1].At).String(), whole(p.load[i].RPS)})
	}
	return plan
}

func whole(rate float64) int { return int(math.Round(rate)) }

// runK6 plays a plan and returns the summary of k6. Its files are left in a folder.
func runK6(ctx context.Context, binary, dir string, plan k6Plan) (outcome, error) {
	script := filepath.Join(dir, "script.js")
	if err := os.WriteFile(script, k6Script, 0o600); err != nil {
		return outcome{}, err
	}
	plan.Summary = filepath.Join(dir, "k6.json")
	encoded, err := json.Marshal(plan)
	if err != nil {
		return outcome{}, err
	}
	process, err := controlplane.StartProcess("k6", binary, filepath.Join(dir, "k6.log"), dir, []string{
		"run", "--quiet", "--no-color", "--no-usage-report", "--address=", "--env=PLAN=" + string(encoded), script,
	})
	if err != nil {
		return outcome{}, err
	}
	select {
	case <-process.Ended():
	case <-ctx.Done():
		return outcome{}, errors.Join(context.Cause(ctx), process.Stop(time.Second))
	}
	summary, err := os.ReadFile(plan.Summary)
	if err != nil {
		return outcome{}, process.Failure()
	}
	return parseSummary(summary)
}

// outcome is what became of the requests that count. Latencies are milliseconds, from sending to
// the end of the answer, those of failed requests included.
type outcome struct {
	Sent, Failed, Dropped int
	Mean, P50, P90, P99   float64
}

// Success is the share of the requests sent that were answered in time and with success. NaN where
// none was sent.
func (o outcome) Success() float64 { return 1 - float64(o.Failed)/float64(o.Sent) }

// parseSummary reads what k6 hands to handleSummary.
func parseSummary(data []byte) (outcome, error) {
	var summary struct {
		Metrics map[string]struct {
			Values map[string]float64 `json:"values"`
		} `json:"metrics"`
	}
	if err := json.Unmarshal(data, &summary); err != nil {
		return outcome{}, fmt.Errorf("summary of k6: %w", err)
	}
	var missing []error
	value := func(metric, value string) float64 {
		metric += "{scenario:main}"
		v, ok := summary.Metrics[metric].Values[value]
		if !ok {
			missing = append(missing, fmt.Errorf("summary of k6: no %s of %s", value, metric))
		}
		return v
	}
	const duration, failed = "http_req_duration", "http_req_failed"
	o := outcome{
		Mean: value(duration, "avg"), P50: value(duration, "p(50)"), P90: value(duration, "p(90)"), P99: value(duration,
			"p(99)"),
		// Of the rate of failures, those that count for it are called passes.
		Failed: int(value(failed, "passes")), Sent: int(value(failed, "passes") + value(failed, "fails")),
		Dropped: int(value("dropped_iterations", "count")),
	}
	return o, errors.Join(missing...)
}

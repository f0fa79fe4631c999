package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// row is the figures of a scaler under a profile, live or simulated. Latencies are milliseconds.
type row struct {
	profile, scaler string
	simulated       bool
	runs            int // that the figures are the mean of

	success               float64 // of the requests sent, as a fraction
	mean, p50, p90, p99   float64
	sent, failed, dropped float64
	podSeconds            float64
	late                  float64 // of the machine, see lateness; 0 where simulated
}

func (r result) row() row {
	return row{
		profile: r.profile, scaler: r.scaler, runs: 1,
		success: r.Success(), mean: r.Mean, p50: r.P50, p90: r.P90, p99: r.P99,
		sent: float64(r.Sent), failed: float64(r.Failed), dropped: float64(r.Dropped), podSeconds: r.podSeconds,
		late: float64(r.late) / float64(time.Millisecond),
	}
}

func (r row) where() string {
	if r.simulated {
		return "simulated"
	}
	return "live"
}

const (
	tableHead   = "%-7s %-18s %-10s %9s %9s %8s %8s %8s %8s %8s %12s\n"
	tableFormat = "%-7s %-18s %-10s %8.2f%% %9.0f %8.0f %8.0f %8.0f %8.0f %8.0f %12.0f\n"
)

func (r row) line() string {
	return fmt.Sprintf(tableFormat, r.profile, r.scaler, r.where(), 100*r.success, r.mean, r.p50, r.p90, r.p99,
		r.failed, r.dropped, r.podSeconds)
}

// less is what the live figures are more than the simulated ones.
func (r row) less(simulated row) string {
	return fmt.Sprintf("%-7s %-18s %-10s %+8.2f  %+9.0f %+8.0f %+8.0f %+8.0f %+8.0f %+8.0f %+12.0f\n", "", "",
		"difference",
		100*(r.success-simulated.success), r.mean-simulated.mean, r.p50-simulated.p50, r.p90-simulated.p90,
		r.p99-simulated.p99,
		r.failed-simulated.failed, r.dropped-simulated.dropped, r.podSeconds-simulated.podSeconds)
}

// table puts each simulated row behind the live one that it belongs to.
func table(rows []row) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, tableHead, "profile", "scaler", "", "success", "mean ms", "p50", "p90", "p99", "failed", "dropped",
		"pod-seconds")
	for _, live := range rows {
		if live.simulated {
			continue
		}
		b.WriteString(live.line())
		for _, other := range rows {
			if other.simulated && other.profile == live.profile && other.scaler == live.scaler {
				b.WriteString(other.line())
				b.WriteString(live.less(other))
			}
		}
	}
	return b.String()
}

func writeSummary(path string, rows []row) error {
	lines := [][]string{{
		"profile", "scaler", "where", "runs", "success", "mean_ms", "p50_ms", "p90_ms", "p99_ms", "sent", "failed",
		"dropped", "pod_seconds", "late_ms",
	}}
	for _, r := range rows {
		line := []string{r.profile, r.scaler, r.where(), strconv.Itoa(r.runs), fmt.Sprintf("%.5f", r.success)}
		for _, v := range []float64{r.mean, r.p50, r.p90, r.p99, r.sent, r.failed, r.dropped, r.podSeconds, r.late} {
			line = append(line, fmt.Sprintf("%.1f", v))
		}
		lines = append(lines, line)
	}
	return writeFile(path, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(lines) })
}

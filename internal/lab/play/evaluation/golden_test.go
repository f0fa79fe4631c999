package evaluation_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/golden"
	"github.com/foresail/foresail/internal/lab/play/evaluation"
	"github.com/foresail/foresail/internal/lab/play/evaluation/evaluationtest"
	"github.com/foresail/foresail/internal/lab/score"
)

// Two reports, one of them without a simulation, over two spans, with a gap, time at the maximum, and prices.
func TestWhatReportsWrite(t *testing.T) {
	var ran []evaluationtest.Scrape
	for _, s := range evaluationtest.Ran(end.Add(-9*time.Hour), 9*time.Hour) {
		if ago := end.Sub(s.At); ago <= 3*time.Hour || ago > 200*time.Minute {
			ran = append(ran, s)
		}
	}
	spans := evaluation.Spans{Names: []string{"2h", "12h"}, Lengths: []time.Duration{2 * time.Hour, 12 * time.Hour}}
	r, err := evaluation.Read(t.Context(), source(t, exposed("a", ran)), key, end, spans.Longest())
	require.NoError(t, err)
	pm := metricOf(t, strings.Replace(spec, "30", "11", 1))
	for name, prices := range map[string]*score.Prices{"report.txt": nil,
		"money.txt": {PodHour: 0.5, Minute: 2, Currency: "EUR"}} {
		playing := play
		playing.Prices = prices
		simulated, err := evaluation.Evaluate(t.Context(), pm, r, spans, playing)
		require.NoError(t, err)
		alone, err := evaluation.Evaluate(t.Context(), unplayable(t), r, spans, playing)
		require.NoError(t, err)
		all := []*evaluation.Result{simulated, alone}
		var text, page, one strings.Builder
		require.NoError(t, evaluation.ReportOn(all).WriteText(&text))
		require.NoError(t, evaluation.ReportOn(all).WritePage(&page))
		require.NoError(t, evaluation.ReportOn(all[1:]).WriteText(&one))
		data, err := json.MarshalIndent(all, "", "  ")
		require.NoError(t, err)
		golden.EqualAll(t, name, map[string]string{"text": text.String(), "page": page.String(),
			"text of one": one.String(), "json": string(data)})
	}
}

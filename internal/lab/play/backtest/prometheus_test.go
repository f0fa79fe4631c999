package backtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/play/backtest"
	"github.com/foresail/foresail/internal/promapi"
)

// prometheus answers range queries with series of a value for each time, "" where there is none.
func prometheus(t *testing.T, series ...func(at time.Time) string) (url string, asked *int) {
	t.Helper()
	asked = new(int)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		*asked++
		start, end, step := number(t, r.FormValue("start")), number(t, r.FormValue("end")), number(t,
			r.FormValue("step"))
		assert.LessOrEqual(t, (end-start)/step+1, 11_000.0, "a server refuses more")
		var out []string
		for i, value := range series {
			var samples []string
			for at := start; at <= end; at += step {
				if v := value(time.Unix(int64(at), 0)); v != "" {
					samples = append(samples, fmt.Sprintf("[%.3f,%q]", at, v))
				}
			}
			if len(samples) > 0 {
				out = append(out, fmt.Sprintf(`{"metric":{"pod":"%d"},"values":[%s]}`, i, strings.Join(samples, ",")))
			}
		}
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`,
			strings.Join(out, ","))
	}), asked
}

func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/query_range", handle)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	assert.NoError(t, err)
	return v
}

func question(t *testing.T, url string) backtest.Question {
	t.Helper()
	clients := promapi.NewClients(promapi.Options{MaxSeries: 100, MaxBytes: 10 << 20})
	api, err := clients.API(url)
	require.NoError(t, err)
	return backtest.Question{
		API: api, Address: url, Query: "rate(x[1m])", To: began.Add(90*time.Second + 90*time.Millisecond),
		Since: 12 * time.Hour, Step: time.Minute,
		Name: "web", Unanswered: "look again",
	}
}

func always(value string) func(time.Time) string { return func(time.Time) string { return value } }

func TestLoadIsTheSumOfSeries(t *testing.T) {
	late := func(at time.Time) string { // a pod that was not there at first
		if at.Before(began.Add(-time.Hour)) {
			return ""
		}
		return "5.5"
	}
	url, asked := prometheus(t, always("10"), late)
	trace, err := backtest.ReadPrometheus(t.Context(), question(t, url))
	require.NoError(t, err)
	assert.Equal(t, 1, *asked)
	assert.Equal(t, "web", trace.Name)
	assert.Equal(t, began.Add(time.Minute-12*time.Hour), trace.Start, "whole steps")
	assert.Equal(t, 12*time.Hour, trace.Length())
	assert.Equal(t, 10.0, trace.Rate(0))
	assert.Equal(t, 15.5, trace.Rate(trace.Length().Milliseconds()))
}

func TestQueriesLongRangesInParts(t *testing.T) {
	url, asked := prometheus(t, func(at time.Time) string { return strconv.Itoa(at.Minute()) })
	q := question(t, url)
	q.Since = 20_000 * time.Minute
	trace, err := backtest.ReadPrometheus(t.Context(), q)
	require.NoError(t, err)
	assert.Equal(t, 3, *asked, "of 20,001 steps")
	assert.Equal(t, q.Since, trace.Length())
	for m := range int64(20_001) {
		require.EqualValues(t, trace.Start.Add(time.Duration(m)*time.Minute).Minute(), trace.Rate(m*60_000),
			"minute %d", m)
	}
}

func TestErrorsDescribeTheAnswer(t *testing.T) {
	fixed := func(body string, status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body)
		}
	}
	matrix := `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   string
	}{
		"nothing": {fixed(fmt.Sprintf(matrix, ""), 200),
			`query "rate(x[1m])", from 2026-02-28T12:01:00Z to 2026-03-01T00:01:00Z in steps of 1m0s: no series came back: look again`},
		"one value": {fixed(fmt.Sprintf(matrix, `{"metric":{},"values":[[1772323200,"4"]]}`), 200),
			"1 series came back with 1 times that have a value: 1 points: must be at least 2"},
		"gap": {fixed(fmt.Sprintf(matrix,
			`{"metric":{},"values":[[1772287200,"4"],[1772287260,"4"],[1772287320,"4"],[1772323200,"4"]]}`), 200), "nothing is known between"},
		"negative": {fixed(fmt.Sprintf(matrix, `{"metric":{},"values":[[1772323200,"-4"]]}`), 200),
			"comes to -4 at 2026-03-01T00:00:00Z: it must be requests per second, 0 or more"},
		"infinite": {fixed(fmt.Sprintf(matrix, `{"metric":{},"values":[[1772323200,"+Inf"]]}`), 200),
			"comes to +Inf at"},
		"histograms": {fixed(fmt.Sprintf(matrix,
			`{"metric":{},"histograms":[[1772323200,{"count":"4","sum":"4","buckets":[]}]]}`), 200), "returns histograms: it must return requests per second"},
		"refused": {fixed(`{"status":"error","errorType":"bad_data","error":"parse error at char 4"}`, 400),
			"is rejected: parse error at char 4; must be PromQL that returns requests per second"},
		"no API": {fixed("not found", 404), "HTTP status 404"},
		"HTML":   {fixed("<html>", 200), "the answer is incomplete or not from Prometheus"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := backtest.ReadPrometheus(t.Context(), question(t, serve(t, c.handle)))
			assert.ErrorContains(t, err, c.want)
		})
	}
}

package pods

import (
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

var asked = time.UnixMilli(5_000)

// pickFrom reads a page and picks one series of it, as a scrape does.
func pickFrom(body string, openMetrics bool, s selection) (pipeline.Sample, error) {
	p := newPage()
	if err := p.read(strings.NewReader(body), newDesired(s.metric), openMetrics); err != nil {
		return pipeline.Sample{}, err
	}
	return s.pick(p, asked)
}

const textPage = `# HELP nodejs_eventloop_utilization Busy part of the event loop.
# TYPE nodejs_eventloop_utilization gauge
nodejs_eventloop_utilization 0.25
# TYPE http_requests_total counter
http_requests_total{code="200",path="/"} 40
http_requests_total{code="500",path="/"} 2
http_requests_total{code="200",path="/a b}\"\\\n"} 7 1234
# TYPE request_seconds histogram
request_seconds_bucket{le="0.1"} 3
request_seconds_bucket{le="+Inf"} 4
request_seconds_sum 1.5
request_seconds_count 4
# TYPE rpc_seconds summary
rpc_seconds{quantile="0.5"} 0.01
rpc_seconds_sum 2
rpc_seconds_count 9
untyped_thing 12
	 indented{a = "b"  , c="d",}	13 6789
broken_line{a="b" 1
also_broken{a="b"} one
bad_number NaN
infinite{sign="+"} +Inf
infinite{sign="-"} -Inf
nodejs_eventloop_utilization_max 0.5
twice 1
twice 1
`

const openMetricsPage = `# HELP queue Items that wait.
# TYPE queue gauge
# UNIT queue items
queue 3 1700000000.123
# TYPE requests counter
requests_total{code="200"} 40 # {trace_id="x } y"} 0.5 1700000000
requests_created{code="200"} 1.6e9
requests_total{code="5 } # 00"} 2 1.5e9 # {} 1
# TYPE latency histogram
latency_bucket{le="0.1"} 3
latency_bucket{le="+Inf"} 4
latency_sum 1.5
latency_count 4
# TYPE depth gaugehistogram
depth_bucket{le="+Inf"} 4
depth_gcount 4
depth_gsum 8
# TYPE state stateset
state{state="on"} 1
# TYPE unknown_thing unknown
unknown_thing 1
# TYPE late gauge
late 1 1e300
# EOF
`

func TestPick(t *testing.T) {
	labels := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	tests := map[string]struct {
		body        string
		openMetrics bool
		selection   selection
		want        pipeline.Sample
		err         string
	}{
		"gauge":     {textPage, false, selection{"nodejs_eventloop_utilization", nil, source.Gauge}, pipeline.Sample{T: 5000, V: 0.25}, ""},
		"counter":   {textPage, false, selection{"http_requests_total", labels("code", "500"), source.Counter}, pipeline.Sample{T: 5000, V: 2}, ""},
		"timestamp": {textPage, false, selection{"http_requests_total", labels("path", "/a b}\"\\\n"), source.Counter}, pipeline.Sample{T: 1234, V: 7}, ""},
		"label absent": {
			"x{a=\"b\"} 1\nx 2\n", false, selection{"x", labels("a", ""), source.Gauge}, pipeline.Sample{T: 5000, V: 2}, "",
		},
		"blanks":                  {textPage, false, selection{"indented", labels("a", "b", "c", "d"), source.Gauge}, pipeline.Sample{T: 6789, V: 13}, ""},
		"untyped as gauge":        {textPage, false, selection{"untyped_thing", nil, source.Gauge}, pipeline.Sample{T: 5000, V: 12}, ""},
		"untyped as counter":      {textPage, false, selection{"untyped_thing", nil, source.Counter}, pipeline.Sample{T: 5000, V: 12}, ""},
		"count of histogram":      {textPage, false, selection{"request_seconds_count", nil, source.Counter}, pipeline.Sample{T: 5000, V: 4}, ""},
		"sum of histogram":        {textPage, false, selection{"request_seconds_sum", nil, source.Counter}, pipeline.Sample{T: 5000, V: 1.5}, ""},
		"bucket of histogram":     {textPage, false, selection{"request_seconds_bucket", labels("le", "0.1"), source.Counter}, pipeline.Sample{T: 5000, V: 3}, ""},
		"count of summary":        {textPage, false, selection{"rpc_seconds_count", nil, source.Counter}, pipeline.Sample{T: 5000, V: 9}, ""},
		"sum of summary":          {textPage, false, selection{"rpc_seconds_sum", nil, source.Counter}, pipeline.Sample{T: 5000, V: 2}, ""},
		"type declared afterward": {"x 1\n# TYPE x counter\n", false, selection{"x", nil, source.Counter}, pipeline.Sample{T: 5000, V: 1}, ""},
		"type in capitals":        {"# TYPE x GAUGE\nx 1\n", false, selection{"x", nil, source.Gauge}, pipeline.Sample{T: 5000, V: 1}, ""},
		"UTF-8 label names":       {"x{\"a.b\"=\"c\"} 1\n", false, selection{"x", nil, source.Gauge}, pipeline.Sample{T: 5000, V: 1}, ""},
		"in braces, not looked at": {
			"{\"x\"} 1\n{} 2\n{a=\"b\"} 3\nx 4\n", false, selection{"x", nil, source.Gauge}, pipeline.Sample{T: 5000, V: 4}, "",
		},

		"OpenMetrics gauge":          {openMetricsPage, true, selection{"queue", nil, source.Gauge}, pipeline.Sample{T: 1700000000123, V: 3}, ""},
		"OpenMetrics counter":        {openMetricsPage, true, selection{"requests_total", labels("code", "200"), source.Counter}, pipeline.Sample{T: 5000, V: 40}, ""},
		"OpenMetrics exemplar":       {openMetricsPage, true, selection{"requests_total", labels("code", "5 } # 00"), source.Counter}, pipeline.Sample{T: 1500000000000, V: 2}, ""},
		"OpenMetrics histogram":      {openMetricsPage, true, selection{"latency_count", nil, source.Counter}, pipeline.Sample{T: 5000, V: 4}, ""},
		"OpenMetrics gaugehistogram": {openMetricsPage, true, selection{"depth_gsum", nil, source.Gauge}, pipeline.Sample{T: 5000, V: 8}, ""},
		"OpenMetrics unknown":        {openMetricsPage, true, selection{"unknown_thing", nil, source.Gauge}, pipeline.Sample{T: 5000, V: 1}, ""},
		"OpenMetrics without newline at the end": {
			"x 1\n# EOF", true, selection{"x", nil, source.Gauge}, pipeline.Sample{T: 5000, V: 1}, "",
		},

		"missing": {textPage, false, selection{"nodejs_eventloop_lag", nil, source.Gauge}, pipeline.Sample{},
			`metric "nodejs_eventloop_lag" is not served; the endpoint serves "nodejs_eventloop_utilization", "nodejs_eventloop_utilization_max", "http_requests_total", "request_seconds_bucket", "request_seconds_sum", 11 more`},
		"missing of few": {"a 1\n", false, selection{"x", nil, source.Gauge}, pipeline.Sample{}, `metric "x" is not served; the endpoint serves "a"`},
		"nothing served": {"", false, selection{"x", nil, source.Gauge}, pipeline.Sample{}, "no metric is served"},
		"ambiguous": {"x{a=\"1\"} 1\nx{b=\"2\",a=\"1\"} 2\n", false, selection{"x", nil, source.Gauge}, pipeline.Sample{},
			`metric "x" has 2 series: {a="1"}, {a="1",b="2"}; matchLabels must leave one`},
		"ambiguous with labels": {textPage, false, selection{"http_requests_total", labels("code", "200"), source.Counter}, pipeline.Sample{},
			`metric "http_requests_total" has 2 series that matchLabels {code="200"} match: {code="200",path="/"}, {code="200",path="/a b}\"\\\n"}; they must leave one`},
		"no series with the labels": {textPage, false, selection{"http_requests_total", labels("code", "404"), source.Counter}, pipeline.Sample{},
			`metric "http_requests_total" has no series that matchLabels {code="404"} match, only {code="200",path="/"}, {code="500",path="/"}, {code="200",path="/a b}\"\\\n"}`},
		"many series": {strings.Join([]string{"x{a=\"1\"} 1", "x{a=\"2\"} 1", "x{a=\"3\"} 1", "x{a=\"4\"} 1", "x{a=\"5\"} 1", "x{a=\"6\"} 1", "x{a=\"7\"} 1\n"}, "\n"),
			false, selection{"x", nil, source.Gauge}, pipeline.Sample{},
			`metric "x" has 7 series: {a="1"}, {a="2"}, {a="3"}, {a="4"}, {a="5"}, 2 more; matchLabels must leave one`},
		"the same twice":      {textPage, false, selection{"twice", nil, source.Gauge}, pipeline.Sample{}, `metric "twice" has 2 series: {}, {}; matchLabels must leave one`},
		"counter as gauge":    {textPage, false, selection{"http_requests_total", labels("code", "500"), source.Gauge}, pipeline.Sample{}, `metric "http_requests_total" is a counter: type must be Counter`},
		"gauge as counter":    {textPage, false, selection{"nodejs_eventloop_utilization", nil, source.Counter}, pipeline.Sample{}, `metric "nodejs_eventloop_utilization" is a gauge: type must be Gauge`},
		"sum as gauge":        {textPage, false, selection{"rpc_seconds_sum", nil, source.Gauge}, pipeline.Sample{}, `metric "rpc_seconds_sum" is a sum of a summary: type must be Counter`},
		"summary":             {textPage, false, selection{"rpc_seconds", nil, source.Gauge}, pipeline.Sample{}, `metric "rpc_seconds" is a summary: must be a gauge or a counter, such as "rpc_seconds_count" of it`},
		"state set":           {openMetricsPage, true, selection{"state", nil, source.Counter}, pipeline.Sample{}, `metric "state" is of type "stateset": must be a gauge or a counter`},
		"not a number":        {textPage, false, selection{"bad_number", nil, source.Gauge}, pipeline.Sample{}, `metric "bad_number" is NaN: must be a finite number`},
		"infinite":            {textPage, false, selection{"infinite", labels("sign", "-"), source.Gauge}, pipeline.Sample{}, `metric "infinite" is -Inf: must be a finite number`},
		"broken line":         {textPage, false, selection{"broken_line", nil, source.Gauge}, pipeline.Sample{}, `metric "broken_line" cannot be read: unexpected end of label value "b"`},
		"broken value":        {textPage, false, selection{"also_broken", nil, source.Gauge}, pipeline.Sample{}, `metric "also_broken" cannot be read: expected float as value, got "one"`},
		"OpenMetrics as text": {openMetricsPage, false, selection{"queue", nil, source.Gauge}, pipeline.Sample{}, `metric "queue" cannot be read: expected integer as timestamp, got "1700000000.123"`},
		"OpenMetrics timestamp": {openMetricsPage, true, selection{"late", nil, source.Gauge}, pipeline.Sample{},
			`metric "late" cannot be read: timestamp: "1e300": must be a time in seconds`},
		"cut short":             {"a 1\nx 12", false, selection{"x", nil, source.Gauge}, pipeline.Sample{}, `metric "x" cannot be read: unexpected end of input stream`},
		"OpenMetrics cut short": {"x 1\n", true, selection{"x", nil, source.Gauge}, pipeline.Sample{}, `the answer is cut short: it lacks the # EOF of OpenMetrics`},
		"long line": {"x{a=\"" + strings.Repeat("b", maxLine) + "\"} 1\n", false, selection{"x", nil, source.Gauge}, pipeline.Sample{},
			`metric "x" cannot be read: a line of more than 32768 bytes`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := pickFrom(test.body, test.openMetrics, test.selection)
			if test.err != "" {
				assert.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestPageReadsHoweverBytesArrive(t *testing.T) {
	long := "# HELP x " + strings.Repeat("long ", maxLine) + "\nother{a=\"" + strings.Repeat("b", 3*maxLine) + "\"} 1\n"
	w := newDesired("untyped_thing")
	s := selection{"untyped_thing", nil, source.Gauge}
	p := newPage()
	require.NoError(t, p.read(iotest.OneByteReader(strings.NewReader(long+textPage)), w, false))
	got, err := s.pick(p, asked)
	require.NoError(t, err)
	assert.Equal(t, 12.0, got.V)

	require.ErrorIs(t, p.read(iotest.TimeoutReader(strings.NewReader(textPage)), w, false), iotest.ErrTimeout)
}

// What one page said is not found on the next.
func TestPageIsUsedAgain(t *testing.T) {
	p := newPage()
	s := selection{"x", nil, source.Gauge}
	require.NoError(t, p.read(strings.NewReader("# TYPE x counter\nx 1\n"), newDesired("x"), false))
	_, err := s.pick(p, asked)
	require.ErrorContains(t, err, "is a counter")
	require.NoError(t, p.read(strings.NewReader("x 2\n"), newDesired("x"), false))
	got, err := s.pick(p, asked)
	require.NoError(t, err)
	assert.Equal(t, 2.0, got.V)
	require.NoError(t, p.read(strings.NewReader("y 2\n"), newDesired("x", "y"), false))
	_, err = s.pick(p, asked)
	require.EqualError(t, err, `metric "x" is not served; the endpoint serves "y"`)
}

// A metric that cannot be read does not hide another that is desired too.
func TestMetricsOfOnePageAreReadApart(t *testing.T) {
	p := newPage()
	require.NoError(t, p.read(strings.NewReader(openMetricsPage), newDesired("late", "queue"), true))
	_, err := (&selection{"late", nil, source.Gauge}).pick(p, asked)
	require.ErrorContains(t, err, "must be a time in seconds")
	got, err := (&selection{"queue", nil, source.Gauge}).pick(p, asked)
	require.NoError(t, err)
	assert.Equal(t, 3.0, got.V)
}

func TestNamesKeptForMessagesAreLimited(t *testing.T) {
	var body strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&body, "metric_%d 1\n", i)
	}
	p := newPage()
	require.NoError(t, p.read(strings.NewReader(body.String()), newDesired("metric_9999x"), false))
	assert.Less(t, len(p.names), maxNames)
	_, err := (&selection{"metric_9999x", nil, source.Gauge}).pick(p, asked)
	assert.ErrorContains(t, err, "9995 more")
}

// wholePage reads the series of a metric by giving expfmt the whole exposition: false if that finds it wanting.
func wholePage(body, metric string) (series []*dto.Metric, family dto.MetricType, ok bool) {
	defer func() {
		if recover() != nil { // expfmt gives up that way on some lines that begin with a brace
			ok = false
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	f := families[metric]
	return f.GetMetric(), f.GetType(), err == nil
}

func wholeValue(m *dto.Metric) float64 {
	switch {
	case m.Gauge != nil:
		return m.GetGauge().GetValue()
	case m.Counter != nil:
		return m.GetCounter().GetValue()
	default:
		return m.GetUntyped().GetValue()
	}
}

// FuzzPick reads anything without a panic, and reads what expfmt understands as a whole as expfmt does.
func FuzzPick(f *testing.F) {
	for _, body := range []string{textPage, openMetricsPage, "{} 1\n", "x{a=\"b\\", "x{\"a\"=\"b\",} 1e3 -5\n", "x{a=\"#}\"} 1 # {} 2\n# EOF\n", "x\x00 1\n", "#TYPE x counter\nx 1\n"} {
		f.Add(body, "x", "a", "b", true)
		f.Add(body, "queue", "", "", false)
	}
	f.Fuzz(func(t *testing.T, body, metric, label, value string, openMetrics bool) {
		if !model.LegacyValidation.IsValidMetricName(metric) {
			return
		}
		s := selection{metric: metric, labels: map[string]string{}, as: source.Gauge}
		if model.LegacyValidation.IsValidLabelName(label) {
			s.labels[label] = value
		}
		got, err := pickFrom(body, openMetrics, s)
		if err == nil && (got.V != got.V || got.V-got.V != 0) {
			t.Fatalf("picked %v", got.V)
		}
		if openMetrics {
			return
		}
		series, family, ok := wholePage(body, metric)
		if !ok || (family != dto.MetricType_GAUGE && family != dto.MetricType_UNTYPED) {
			return
		}
		one, wholeErr := s.one(series)
		if wholeErr != nil || err != nil {
			// They may differ in what a family's type makes of a series, not in which series there are.
			if wholeErr != nil && err == nil {
				t.Fatalf("picked %v where there is %v", got, wholeErr)
			}
			return
		}
		if got.V != wholeValue(one) {
			t.Fatalf("picked %v, not %v", got.V, wholeValue(one))
		}
	})
}

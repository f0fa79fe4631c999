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

// selected is a selection as a PredictedMetric has it.
type selected struct {
	metric string
	labels map[string]string
	as     source.Type
}

func (s selected) desired() *selectionSet {
	return newSelectionSet(newSelection(s.metric, s.labels, s.as))
}

// pickFrom reads a page and picks one series of it, as a scrape does.
func pickFrom(body string, openMetrics bool, s selected) (pipeline.Sample, error) {
	p := newPage()
	if err := p.read(strings.NewReader(body), s.desired(), defaultMaxSeries, openMetrics); err != nil {
		return pipeline.Sample{}, err
	}
	return p.pick(0, asked)
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
		selection   selected
		want        pipeline.Sample
		err         string
	}{
		"gauge": {textPage, false, selected{"nodejs_eventloop_utilization", nil, source.Gauge},
			pipeline.Sample{T: 5000, V: 0.25}, ""},
		"counter": {textPage, false, selected{"http_requests_total", labels("code", "500"), source.Counter},
			pipeline.Sample{T: 5000, V: 2}, ""},
		"timestamp": {textPage, false, selected{"http_requests_total", labels("path", "/a b}\"\\\n"), source.Counter},
			pipeline.Sample{T: 1234, V: 7}, ""},
		"label absent": {
			"x{a=\"b\"} 1\nx 2\n", false, selected{"x", labels("a", ""), source.Gauge}, pipeline.Sample{T: 5000, V: 2},
			"",
		},
		"blanks": {textPage, false, selected{"indented", labels("a", "b", "c", "d"), source.Gauge},
			pipeline.Sample{T: 6789, V: 13}, ""},
		"untyped as gauge": {textPage, false, selected{"untyped_thing", nil, source.Gauge},
			pipeline.Sample{T: 5000, V: 12}, ""},
		"untyped as counter": {textPage, false, selected{"untyped_thing", nil, source.Counter},
			pipeline.Sample{T: 5000, V: 12}, ""},
		"count of histogram": {textPage, false, selected{"request_seconds_count", nil, source.Counter},
			pipeline.Sample{T: 5000, V: 4}, ""},
		"sum of histogram": {textPage, false, selected{"request_seconds_sum", nil, source.Counter},
			pipeline.Sample{T: 5000, V: 1.5}, ""},
		"bucket of histogram": {textPage, false,
			selected{"request_seconds_bucket", labels("le", "0.1"), source.Counter},
			pipeline.Sample{T: 5000, V: 3}, ""},
		"count of summary": {textPage, false, selected{"rpc_seconds_count", nil, source.Counter},
			pipeline.Sample{T: 5000, V: 9}, ""},
		"sum of summary": {textPage, false, selected{"rpc_seconds_sum", nil, source.Counter},
			pipeline.Sample{T: 5000, V: 2}, ""},
		"type declared afterward": {"x 1\n# TYPE x counter\n", false, selected{"x", nil, source.Counter},
			pipeline.Sample{T: 5000, V: 1}, ""},
		"type in capitals": {"# TYPE x GAUGE\nx 1\n", false, selected{"x", nil, source.Gauge},
			pipeline.Sample{T: 5000, V: 1}, ""},
		"UTF-8 label names": {"x{\"a.b\"=\"c\"} 1\n", false, selected{"x", nil, source.Gauge},
			pipeline.Sample{T: 5000, V: 1}, ""},
		"in braces, not looked at": {
			"{\"x\"} 1\n{} 2\n{a=\"b\"} 3\nx 4\n", false, selected{"x", nil, source.Gauge},
			pipeline.Sample{T: 5000, V: 4}, "",
		},

		"OpenMetrics gauge": {openMetricsPage, true, selected{"queue", nil, source.Gauge},
			pipeline.Sample{T: 1700000000123, V: 3}, ""},
		"OpenMetrics counter": {openMetricsPage, true,
			selected{"requests_total", labels("code", "200"), source.Counter}, pipeline.Sample{T: 5000, V: 40}, ""},
		"OpenMetrics exemplar": {openMetricsPage, true,
			selected{"requests_total", labels("code", "5 } # 00"), source.Counter},
			pipeline.Sample{T: 1500000000000, V: 2}, ""},
		"OpenMetrics histogram": {openMetricsPage, true, selected{"latency_count", nil, source.Counter},
			pipeline.Sample{T: 5000, V: 4}, ""},
		"OpenMetrics gaugehistogram": {openMetricsPage, true, selected{"depth_gsum", nil, source.Gauge},
			pipeline.Sample{T: 5000, V: 8}, ""},
		"OpenMetrics unknown": {openMetricsPage, true, selected{"unknown_thing", nil, source.Gauge},
			pipeline.Sample{T: 5000, V: 1}, ""},
		"OpenMetrics without newline at the end": {
			"x 1\n# EOF", true, selected{"x", nil, source.Gauge}, pipeline.Sample{T: 5000, V: 1}, "",
		},

		"missing": {textPage, false, selected{"nodejs_eventloop_lag", nil, source.Gauge}, pipeline.Sample{},
			`metric "nodejs_eventloop_lag" is not served; the endpoint serves "nodejs_eventloop_utilization", "nodejs_eventloop_utilization_max", "http_requests_total", "request_seconds_bucket", "request_seconds_sum", 11 more`},
		"missing of few": {"a 1\n", false, selected{"x", nil, source.Gauge}, pipeline.Sample{},
			`metric "x" is not served; the endpoint serves "a"`},
		"nothing served": {"", false, selected{"x", nil, source.Gauge}, pipeline.Sample{}, "no metric is served"},
		"ambiguous": {"x{a=\"1\"} 1\nx{b=\"2\",a=\"1\"} 2\n", false, selected{"x", nil, source.Gauge},
			pipeline.Sample{},
			`metric "x" has 2 series: {a="1"}, {a="1",b="2"}; matchLabels must leave one`},
		"ambiguous with labels": {textPage, false,
			selected{"http_requests_total", labels("code", "200"), source.Counter}, pipeline.Sample{},
			`metric "http_requests_total" has 2 series that matchLabels {code="200"} match: {code="200",path="/"}, {code="200",path="/a b}\"\\\n"}; they must leave one`},
		"no series with the labels": {textPage, false,
			selected{"http_requests_total", labels("code", "404"), source.Counter}, pipeline.Sample{},
			`metric "http_requests_total" has no series that matchLabels {code="404"} match, only {code="200",path="/"}, {code="500",path="/"}, {code="200",path="/a b}\"\\\n"}`},
		"many series": {strings.Join([]string{"x{a=\"1\"} 1", "x{a=\"2\"} 1", "x{a=\"3\"} 1", "x{a=\"4\"} 1",
			"x{a=\"5\"} 1",
			"x{a=\"6\"} 1", "x{a=\"7\"} 1\n"}, "\n"),
			false, selected{"x", nil, source.Gauge}, pipeline.Sample{},
			`metric "x" has 7 series: {a="1"}, {a="2"}, {a="3"}, {a="4"}, {a="5"}, 2 more; matchLabels must leave one`},
		"the same twice": {textPage, false, selected{"twice", nil, source.Gauge}, pipeline.Sample{},
			`metric "twice" has 2 series: {}, {}; matchLabels must leave one`},
		"counter as gauge": {textPage, false, selected{"http_requests_total", labels("code", "500"), source.Gauge},
			pipeline.Sample{}, `metric "http_requests_total" is a counter: type must be Counter`},
		"gauge as counter": {textPage, false, selected{"nodejs_eventloop_utilization", nil, source.Counter},
			pipeline.Sample{}, `metric "nodejs_eventloop_utilization" is a gauge: type must be Gauge`},
		"sum as gauge": {textPage, false, selected{"rpc_seconds_sum", nil, source.Gauge}, pipeline.Sample{},
			`metric "rpc_seconds_sum" is a sum of a summary: type must be Counter`},
		"summary": {textPage, false, selected{"rpc_seconds", nil, source.Gauge}, pipeline.Sample{},
			`metric "rpc_seconds" is a summary: must be a gauge or a counter, such as "rpc_seconds_count" of it`},
		"state set": {openMetricsPage, true, selected{"state", nil, source.Counter}, pipeline.Sample{},
			`metric "state" is of type "stateset": must be a gauge or a counter`},
		"not a number": {textPage, false, selected{"bad_number", nil, source.Gauge}, pipeline.Sample{},
			`metric "bad_number" is NaN: must be a finite number`},
		"infinite": {textPage, false, selected{"infinite", labels("sign", "-"), source.Gauge}, pipeline.Sample{},
			`metric "infinite" is -Inf: must be a finite number`},
		"broken line": {textPage, false, selected{"broken_line", nil, source.Gauge}, pipeline.Sample{},
			`metric "broken_line" cannot be read: expected label name, got "1" ("INVALID") while parsing: "broken_line{a=\"b\" 1"`},
		"broken value": {textPage, false, selected{"also_broken", nil, source.Gauge}, pipeline.Sample{},
			`metric "also_broken" cannot be read: strconv.ParseFloat: parsing "one": invalid syntax while parsing: "also_broken{a=\"b\"} one"`},
		"OpenMetrics as text": {openMetricsPage, false, selected{"queue", nil, source.Gauge}, pipeline.Sample{},
			`metric "queue" cannot be read: expected next entry after timestamp, got "." ("INVALID") while parsing: "queue 3 1700000000."`},
		"OpenMetrics timestamp": {openMetricsPage, true, selected{"late", nil, source.Gauge}, pipeline.Sample{},
			`metric "late" cannot be read: timestamp: "1e300": must be a time in seconds`},
		"cut short": {"a 1\nx 12", false, selected{"x", nil, source.Gauge}, pipeline.Sample{},
			`metric "x" cannot be read: the page ends within a line`},
		"OpenMetrics cut short": {"x 1\n", true, selected{"x", nil, source.Gauge}, pipeline.Sample{},
			`the answer is cut short: it lacks the # EOF of OpenMetrics`},
		"long line": {"x{a=\"" + strings.Repeat("b", maxLine) + "\"} 1\n", false,
			selected{"x", nil, source.Gauge}, pipeline.Sample{},
			`metric "x" cannot be read: a line of more than 32768 bytes`},
		"quote over two lines": {"x{a=\"1\nx{a=\",b=\"2\"} 1\n", false, selected{"x", nil, source.Gauge},
			pipeline.Sample{},
			`metric "x" cannot be read: a line is broken`},
		"zero byte": {"x 1\nx\x00{a=\"1\"} 2\nx{a\x00=\"1\"} 3\n", false, selected{"x", nil, source.Gauge},
			pipeline.Sample{}, `metric "x" cannot be read: expected equal, got "\x00" ("INVALID") while parsing: "x{a\x00"`},
		"label twice": {"x{a=\"1\",a=\"2\"} 1\n", false, selected{"x", nil, source.Gauge}, pipeline.Sample{},
			`metric "x" cannot be read: a series has the label "a" twice`},
		"many series of which one matches": {
			manySeries(defaultMaxSeries), false, selected{"x", labels("i", "4999"), source.Gauge},
			pipeline.Sample{T: 5000, V: 4999}, "",
		},
		"too many series": {manySeries(defaultMaxSeries + 1), false,
			selected{"x", labels("i", "4999"), source.Gauge}, pipeline.Sample{},
			`metric "x" cannot be read: it has more than 10000 series`},
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

// manySeries is a page with n series of x, from i="0" to i="n-1", each with its number.
func manySeries(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x{i=\"%d\"} %d\n", i, i)
	}
	return b.String()
}

// Whatever labels are served, messages stay short.
func TestMessagesAreLimited(t *testing.T) {
	var wide strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&wide, "l%d=\"%s\",", i, strings.Repeat("v", 10))
	}
	for name, body := range map[string]string{
		"labels":     "x{" + wide.String() + "} 1\nx{" + wide.String() + "a=\"b\"} 1\n",
		"values":     "x{a=\"" + strings.Repeat("b", 10_000) + "\"} 1\nx 1\n",
		"label name": "x{" + strings.Repeat("b", 10_000) + "=\"a\"} 1\nx 1\n",
		"type":       "# TYPE x " + strings.Repeat("b", 10_000) + "\nx 1\n",
		"value":      "x " + strings.Repeat("b", 10_000) + "\n",
		"names":      strings.Repeat("b", 10_000) + " 1\n",
	} {
		_, err := pickFrom(body, false, selected{"x", nil, source.Gauge})
		require.Error(t, err, name)
		assert.Less(t, len(err.Error()), 1000, name)
	}
}

func TestPageReadsHoweverBytesArrive(t *testing.T) {
	long := "# HELP x " + strings.Repeat("long ", maxLine) + "\nother{a=\"" + strings.Repeat("b", 3*maxLine) + "\"} 1\n"
	w := selected{"untyped_thing", nil, source.Gauge}.desired()
	p := newPage()
	require.NoError(t, p.read(iotest.OneByteReader(strings.NewReader(long+textPage)), w, defaultMaxSeries, false))
	got, err := p.pick(0, asked)
	require.NoError(t, err)
	assert.Equal(t, 12.0, got.V)

	require.ErrorIs(t, p.read(iotest.TimeoutReader(strings.NewReader(textPage)), w, defaultMaxSeries, false),
		iotest.ErrTimeout)
}

// What one page said is not found on the next.
func TestPageIsUsedAgain(t *testing.T) {
	p := newPage()
	x := newSelection("x", nil, source.Gauge)
	read := func(body string, s ...*selection) {
		require.NoError(t, p.read(strings.NewReader(body), newSelectionSet(s...), defaultMaxSeries, false))
	}
	read("# TYPE x counter\nx 1\n", x)
	_, err := p.pick(0, asked)
	require.ErrorContains(t, err, "is a counter")
	read("x 2 7000\n", x)
	got, err := p.pick(0, asked)
	require.NoError(t, err)
	assert.Equal(t, pipeline.Sample{T: 7000, V: 2}, got)
	read("x 3\n", x)
	got, err = p.pick(0, asked)
	require.NoError(t, err)
	assert.Equal(t, pipeline.Sample{T: 5000, V: 3}, got)
	read("y 2\n", x, newSelection("y", nil, source.Gauge))
	_, err = p.pick(0, asked)
	require.EqualError(t, err, `metric "x" is not served; the endpoint serves "y"`)
}

// Neither a metric that cannot be read nor one that alternates with it line by line hides another that is desired too.
func TestMetricsOfOnePageAreReadApart(t *testing.T) {
	p := newPage()
	late, queue := newSelection("late", nil, source.Gauge), newSelection("queue", nil, source.Gauge)
	require.NoError(t, p.read(strings.NewReader(openMetricsPage), newSelectionSet(late, queue), defaultMaxSeries, true))
	_, err := p.pick(0, asked)
	require.ErrorContains(t, err, "must be a time in seconds")
	got, err := p.pick(1, asked)
	require.NoError(t, err)
	assert.Equal(t, 3.0, got.V)

	one, two := newSelection("a", map[string]string{"i": "1"}, source.Gauge),
		newSelection("b", map[string]string{"i": "2"}, source.Gauge)
	require.NoError(t, p.read(strings.NewReader("a{i=\"1\"} 1\nb{i=\"1\"} 2\na{i=\"2\"} 3\nb{i=\"2\"} 4\nb broken\n"),
		newSelectionSet(one, two), defaultMaxSeries, false))
	got, err = p.pick(0, asked)
	require.NoError(t, err)
	assert.Equal(t, 1.0, got.V)
	_, err = p.pick(1, asked)
	require.ErrorContains(t, err, `metric "b" cannot be read: `)
}

func TestNamesKeptForMessagesAreLimited(t *testing.T) {
	var body strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&body, "metric_%d 1\n", i)
	}
	p := newPage()
	require.NoError(t, p.read(strings.NewReader(body.String()),
		selected{"metric_9999x", nil, source.Gauge}.desired(), defaultMaxSeries, false))
	assert.Less(t, len(p.names), maxNames)
	_, err := p.pick(0, asked)
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
	for _, body := range []string{textPage, openMetricsPage, "{} 1\n", "x{a=\"b\\", "x{\"a\"=\"b\",} 1e3 -5\n",
		"x{a=\"#}\"} 1 # {} 2\n# EOF\n", "x\x00 1\n", "#TYPE x counter\nx 1\n"} {
		f.Add(body, "x", "a", "b", true)
		f.Add(body, "queue", "", "", false)
	}
	f.Fuzz(func(t *testing.T, body, metric, label, value string, openMetrics bool) {
		if !model.LegacyValidation.IsValidMetricName(metric) {
			return
		}
		s := selected{metric: metric, labels: map[string]string{}, as: source.Gauge}
		if model.LegacyValidation.IsValidLabelName(label) {
			s.labels[label] = value
		}
		got, err := pickFrom(body, openMetrics, s)
		if err == nil && !finite(got.V) {
			t.Fatalf("picked %v", got.V)
		}
		if openMetrics {
			return
		}
		series, family, ok := wholePage(body, metric)
		if !ok || (family != dto.MetricType_GAUGE && family != dto.MetricType_UNTYPED) {
			return
		}
		var matching []*dto.Metric
		for _, m := range series {
			if wholeMatches(m, s.labels) {
				matching = append(matching, m)
			}
		}
		if err != nil {
			// Signs of timestamps, which expfmt accepts, are no part of the format.
			if len(matching) == 1 && finite(wholeValue(matching[0])) && matching[0].TimestampMs == nil {
				t.Fatalf("picked nothing where there is one series: %v", err)
			}
			return
		}
		if len(matching) != 1 {
			t.Fatalf("picked %v of %d series", got, len(matching))
		}
		if got.V != wholeValue(matching[0]) {
			t.Fatalf("picked %v, not %v", got.V, wholeValue(matching[0]))
		}
	})
}

func finite(v float64) bool { return v-v == 0 }

// wholeMatches is selection.matches for what expfmt reads.
func wholeMatches(m *dto.Metric, matchLabels map[string]string) bool {
	has := map[string]string{}
	for _, l := range m.GetLabel() {
		has[l.GetName()] = l.GetValue()
	}
	for name, value := range matchLabels {
		if has[name] != value {
			return false
		}
	}
	return true
}

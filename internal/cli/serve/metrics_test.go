package serve

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/adapter/apiservice"
	"github.com/foresail/foresail/adapter/door/custommetrics"
	"github.com/foresail/foresail/adapter/door/externalmetrics"
	"github.com/foresail/foresail/adapter/door/externalmetrics/forward"
	"github.com/foresail/foresail/adapter/door/keda"
	"github.com/foresail/foresail/adapter/forecast/checkpoint"
	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/forecast/history"
	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/adapter/keep/capacitybuffer"
	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/adapter/scheduler/nodeusage"
	"github.com/foresail/foresail/adapter/source/pods"
	"github.com/foresail/foresail/adapter/source/prometheus"
	"github.com/foresail/foresail/adapter/source/remotewrite"
	"github.com/foresail/foresail/adapter/source/resource"
	"github.com/foresail/foresail/internal/docpages"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/journal"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/report"
)

// exposed is a Registerer that gathers what is registered, and keeps the descriptions of what has
// no value yet.
type exposed struct {
	*client.Registry
	t        *testing.T
	families map[string]*dto.MetricFamily // by name
	labels   map[string]string            // their names, separated by commas
}

var descParts = regexp.MustCompile(`fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"), .*constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)

// constLabel is a label with its value, as descriptions have it.
var constLabel = regexp.MustCompile(`(\w+)="[^"]*"`)

func (e *exposed) Register(collector client.Collector) error {
	described := make(chan *client.Desc)
	go func() {
		collector.Describe(described)
		close(described)
	}()
	for desc := range described {
		parts := descParts.FindStringSubmatch(desc.String())
		require.NotNil(e.t, parts, desc.String())
		help, err := strconv.Unquote(parts[2])
		require.NoError(e.t, err)
		e.describe(parts[1], help)
		e.labels[parts[1]] = strings.Trim(constLabel.ReplaceAllString(parts[3], "$1")+","+parts[4], ",")
		e.addChild(collector, strings.Count(parts[4], ",")+1)
	}
	return e.Registry.Register(collector)
}

func (e *exposed) MustRegister(all ...client.Collector) {
	for _, collector := range all {
		require.NoError(e.t, e.Register(collector))
	}
}

// describe adds a family without a value, of the type that its name claims.
func (e *exposed) describe(name, help string) {
	kind := dto.MetricType_GAUGE
	if strings.HasSuffix(name, "_total") {
		kind = dto.MetricType_COUNTER
	}
	e.families[name] = &dto.MetricFamily{Name: &name, Help: &help, Type: &kind}
}

// addChild gives a vector a first value.
func (e *exposed) addChild(collector client.Collector, labels int) {
	values := make([]string, labels)
	switch vec := collector.(type) {
	case *client.CounterVec:
		vec.WithLabelValues(values...)
	case *client.GaugeVec:
		vec.WithLabelValues(values...)
	case *client.HistogramVec:
		vec.WithLabelValues(values...)
	}
}

// exposePool gives the metrics of a pool first values, as a replica that does not lead.
func exposePool(t *testing.T, metrics *report.Metrics) {
	t.Helper()
	report.New("", report.Options{Metrics: metrics}).Report(t.Context(), nodepool.CycleReport{
		Decision: plan.Decision{Reason: plan.NothingToDo}, Events: []journal.Event{{}},
		Snapshot: plan.Snapshot{
			Now: time.Now(), Instances: []plan.Instance{{Worker: true, Node: plan.Node{Ready: true}}},
			Pending: plan.Pending{Known: true}, Signals: []plan.Signal{{Known: true}},
		},
	})
}

// expose registers everything that foresail run exposes of its own with all parts enabled.
func expose(t *testing.T) *exposed {
	t.Helper()
	e := &exposed{Registry: client.NewPedanticRegistry(), t: t, families: map[string]*dto.MetricFamily{},
		labels: map[string]string{}}
	e.MustRegister(externalmetrics.New(forecaster.New(time.Now, e, forecaster.Options{}), time.Now))
	e.MustRegister(custommetrics.New(forecaster.New(time.Now, client.NewRegistry(), forecaster.Options{}), time.Now))
	_, err := apiservice.New(apiservice.Options{Registerer: e, Now: time.Now, Secret: "ca", Validity: time.Hour})
	require.NoError(t, err)
	_, err = forward.New(forward.Options{Cluster: &rest.Config{}, Registerer: e, Now: time.Now})
	require.NoError(t, err)
	capacitybuffer.New(keep.Options{Registerer: e}, &capacitybuffer.Nodes{})
	checkpoint.New(checkpoint.Options{Registerer: e})
	history.New(history.Options{Registerer: e})
	pods.New(pods.Options{Registerer: e})
	prometheus.New(prometheus.Options{Registerer: e})
	remotewrite.New(remotewrite.Options{Registerer: e})
	resource.New(resource.Options{Registerer: e})
	exposePool(t, report.NewMetrics(e))
	loads, err := nodeusage.New(nodeusage.Options{Source: &nodeusage.MetricsAPI{}, Registry: e})
	require.NoError(t, err)
	_, err = extender.New(extender.Options{
		Client: fake.NewClientset(), Forecasts: loads, RemovalMark: drain.Mark, Rules: extender.DefaultRules(),
		Registry: e,
	})
	require.NoError(t, err)
	server, err := extender.NewServer(extender.ServerOptions{Address: "127.0.0.1:0", Registry: e}, nil)
	require.NoError(t, err)
	scaler, err := keda.NewServer(keda.Options{Address: "127.0.0.1:0"}, keda.NewScaler(nil, nil, time.Now),
		func() error { return nil })
	require.NoError(t, err)
	e.MustRegister(scaler)
	over, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, server.Run(over))
	require.NoError(t, scaler.Run(over))

	gathered, err := e.Gather()
	require.NoError(t, err)
	for _, family := range gathered {
		e.families[family.GetName()] = family
	}
	return e
}

// sorted returns the families by name.
func (e *exposed) sorted() []*dto.MetricFamily {
	return slices.SortedFunc(maps.Values(e.families),
		func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
}

func TestMetricsFollowTheConventionsOfPrometheus(t *testing.T) {
	all := expose(t).sorted()
	require.Greater(t, len(all), 50)
	for _, family := range all {
		assert.Truef(t, strings.HasPrefix(family.GetName(), "foresail_"), "%s: every metric has the prefix",
			family.GetName())
		assert.Truef(t, strings.HasSuffix(family.GetHelp(), "."), "%s: %q is no sentence", family.GetName(),
			family.GetHelp())
	}
	problems, err := promlint.NewWithMetricFamilies(all).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

var (
	metricName      = regexp.MustCompile(`foresail_[a-z_]+\b`)
	histogramSeries = regexp.MustCompile(`_seconds_(bucket|count|sum)$`)
)

func TestMetricsThatPagesNameExist(t *testing.T) {
	exposed := expose(t)
	found := 0
	for _, page := range docpages.Pages(t, "../../..") {
		if page.Path == "CHANGELOG.md" {
			continue // it names former metrics
		}
		for _, name := range metricName.FindAllString(page.Text, -1) {
			if strings.HasSuffix(name, "_") { // the prefix of several
				continue
			}
			found++
			assert.Contains(t, slices.Collect(maps.Keys(exposed.families)),
				histogramSeries.ReplaceAllString(name, "_seconds"), page.Path)
		}
	}
	assert.NotZero(t, found)
}

// metricSections are the sections of docs/reference/metrics.md, by the prefixes of their metrics.
// The first that fits counts.
var metricSections = []struct {
	title    string
	prefixes []string
	labels   string // of all of them, left out of the entries
}{
	{"Source pods", []string{"foresail_scrape"}, ""},
	{"Source prometheus", []string{"foresail_prometheus_"}, ""},
	{"Source remoteWrite", []string{"foresail_remote_write_"}, ""},
	{"Source resource", []string{"foresail_resource_"}, ""},
	{"Worker pools", []string{"foresail_nodepool_"}, "pool"},
	{"KEDA", []string{"foresail_keda_"}, ""},
	{"Scheduler extender", []string{"foresail_extender_", "foresail_node_"}, ""},
	{"Foresail as a whole", []string{"foresail_forecasts_total", "foresail_forecast_round_", "foresail_checkpoint",
		"foresail_history_", "foresail_metric_", "foresail_tls_", "foresail_apiservice_", "foresail_forward_",
		"foresail_serving_", "foresail_capacity_buffer_node"}, ""},
	{"PredictedMetrics", []string{"foresail_"}, "namespace,predictedmetric"},
}

// TestMetricReferenceIsGenerated compares the reference of metrics with those that are exposed, or
// writes it (`make docs`).
func TestMetricReferenceIsGenerated(t *testing.T) {
	exposed := expose(t)
	entries := map[string][]docpages.Entry{}
	for _, family := range exposed.sorted() {
		name := family.GetName()
		for _, section := range metricSections {
			if !slices.ContainsFunc(section.prefixes,
				func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				continue
			}
			if labels := strings.Trim(strings.TrimPrefix(exposed.labels[name], section.labels), ","); labels != "" {
				name += "{" + labels + "}"
			}
			entries[section.title] = append(entries[section.title], docpages.Entry{Name: name, Text: family.GetHelp()})
			break
		}
	}
	var text strings.Builder
	for _, section := range metricSections {
		text.WriteString("\n## " + section.title + "\n\n")
		if section.labels != "" {
			text.WriteString("All have the labels `" + strings.ReplaceAll(section.labels, ",", "` and `") + "`.\n\n")
		}
		text.WriteString(docpages.List(entries[section.title]))
	}
	docpages.Verify(t, "../../../docs/reference/metrics.md", "metrics", text.String())
}

func TestEveryMetricIsReviewed(t *testing.T) {
	docpages.VerifyReviewed(t, "../../..", "Metrics", slices.Collect(maps.Keys(expose(t).families)))
}

package main

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/foresail/foresail/adapter/extender"
	"github.com/foresail/foresail/adapter/externalmetrics"
	"github.com/foresail/foresail/adapter/forecaster"
	"github.com/foresail/foresail/adapter/nodeusage"
	"github.com/foresail/foresail/adapter/source/pods"
	"github.com/foresail/foresail/adapter/source/prometheus"
	"github.com/foresail/foresail/adapter/source/remotewrite"
	"github.com/foresail/foresail/adapter/source/resource"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/tell"
)

// exposed is a Registerer that gathers what is registered, and keeps the descriptions of what has no value yet.
type exposed struct {
	*client.Registry
	t     *testing.T
	descs map[string]*dto.MetricFamily // by name
}

var descParts = regexp.MustCompile(`fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", .*variableLabels: \{([^}]*)\}`)

func (e *exposed) Register(collector client.Collector) error {
	described := make(chan *client.Desc)
	go func() {
		collector.Describe(described)
		close(described)
	}()
	for desc := range described {
		parts := descParts.FindStringSubmatch(desc.String())
		require.NotNil(e.t, parts, desc.String())
		e.describe(parts[1], parts[2])
		e.addChild(collector, strings.Count(parts[3], ",")+1)
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
	e.descs[name] = &dto.MetricFamily{Name: &name, Help: &help, Type: &kind}
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

// families returns everything that foresail run exposes of its own with all parts enabled.
func families(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	e := &exposed{Registry: client.NewPedanticRegistry(), t: t, descs: map[string]*dto.MetricFamily{}}
	e.MustRegister(externalmetrics.New(forecaster.New(time.Now, e), time.Now))
	pods.New(pods.Options{Registerer: e})
	prometheus.New(prometheus.Options{Registerer: e})
	remotewrite.New(remotewrite.Options{Registerer: e})
	resource.New(resource.Options{Registerer: e})
	tell.NewMetrics(e)
	loads, err := nodeusage.New(nodeusage.Options{Source: &nodeusage.MetricsAPI{}, Registry: e})
	require.NoError(t, err)
	_, err = extender.New(extender.Options{
		Client: fake.NewClientset(), Forecasts: loads, RemovalMark: drain.Mark, Rules: extender.DefaultRules(), Registry: e,
	})
	require.NoError(t, err)
	server, err := extender.NewServer(extender.ServerOptions{Address: "127.0.0.1:0", Registry: e}, nil, nil)
	require.NoError(t, err)
	over, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, server.Run(over))

	gathered, err := e.Gather()
	require.NoError(t, err)
	for _, family := range gathered {
		e.descs[family.GetName()] = family
	}
	return slices.SortedFunc(maps.Values(e.descs), func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
}

func TestMetricsFollowTheConventionsOfPrometheus(t *testing.T) {
	all := families(t)
	require.Greater(t, len(all), 50)
	for _, family := range all {
		assert.Truef(t, strings.HasPrefix(family.GetName(), "foresail_"), "%s: every metric has the prefix", family.GetName())
		assert.Truef(t, strings.HasSuffix(family.GetHelp(), "."), "%s: %q is no sentence", family.GetName(), family.GetHelp())
	}
	problems, err := promlint.NewWithMetricFamilies(all).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

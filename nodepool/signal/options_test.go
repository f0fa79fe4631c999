package signal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
)

func specOf(t *testing.T, text string) *v1alpha1.WorkerPoolSpec {
	t.Helper()
	var spec v1alpha1.WorkerPoolSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &spec))
	return &spec
}

func TestOptionsOfASpec(t *testing.T) {
	assert.Equal(t, Options{
		Signals: []Config{{Name: Requests, Threshold: 1}},
		Forecast: Forecast{
			Interval: 15 * time.Second, Window: 15 * time.Minute,
			RedistributionTimeout: 3 * time.Minute, StartupTime: time.Minute,
			HorizonMin: 30 * time.Second, HorizonMax: 10 * time.Minute,
		},
	}, OptionsOf(specOf(t, "{min: 1, max: 5}")))

	spec := specOf(t, `
min: 2
max: 10
signals:
- {name: requests, threshold: 800m, for: 10s}
- {name: cpu, threshold: 70e-2, downThreshold: 300m, prometheus: {query: c, nodeLabel: node}}
- {name: p95, threshold: 500, for: 0s, prometheus: {address: "http://other", query: q, value: Level}}
seasonal: {prometheus: {query: s}, weeks: 3}
forecast: Disabled
interval: 10s
startupTime: 90s
`)
	want := Options{
		Signals: []Config{
			{Name: Requests, Threshold: 0.8, For: 10 * time.Second},
			{
				Name:      CPU,
				Threshold: 0.7,
				Down:      0.3,
				For:       3 * time.Minute,
				Query:     &Query{Expr: "c", NodeLabel: "node", Value: v1alpha1.PoolValueSum},
			},
			{Name: "p95", Threshold: 500, Query: &Query{Address: "http://other", Expr: "q", Value: v1alpha1.PoolValueLevel}},
		},
		Forecast: Forecast{
			Interval: 10 * time.Second, Window: 10 * time.Minute,
			RedistributionTimeout: 2 * time.Minute, StartupTime: 90 * time.Second,
			HorizonMin: 20 * time.Second, HorizonMax: 10 * time.Minute, Disabled: true,
		},
		Seasonal: &SeasonalConfig{Query: Query{Expr: "s", Value: v1alpha1.PoolValueSum}, Weeks: 3},
	}
	assert.Equal(t, want, OptionsOf(spec))
	spec.Default()
	assert.Equal(t, want, OptionsOf(spec), "defaults of both kinds are equal")
	empty := specOf(t, "{min: 1, max: 5}")
	empty.Default()
	assert.Equal(t, OptionsOf(specOf(t, "{min: 1, max: 5}")), OptionsOf(empty))
}

func TestOptionsAreValidated(t *testing.T) {
	query := &Query{Expr: "q", NodeLabel: "node"}
	tests := map[string]struct {
		change func(o *Options)
		want   string
	}{
		"valid": {func(*Options) {}, ""},
		"no threshold": {
			func(o *Options) { o.Signals[0].Threshold = 0 },
			"signals[0].threshold: 0: must be finite and above 0",
		},
		"down above": {
			func(o *Options) { o.Signals[1].Down = 0.8 },
			"signals[1].downThreshold: 0.8: must be above 0 and below the threshold (0.7)",
		},
		"twice": {func(o *Options) { o.Signals[1].Name = Requests }, `signals[1].name: "requests": must be unique`},
		"no query": {
			func(o *Options) { o.Signals[1].Query = nil },
			`signals[1].prometheus: "cpu": must be given for each signal except requests`,
		},
		"requests with a query": {
			func(o *Options) { o.Signals[0].Query = query },
			`signals[0].prometheus: "requests": must be given for each signal except requests`,
		},
		"a negative duration": {
			func(o *Options) { o.Signals[1].For = -time.Second },
			"signals[1].for: -1s: must be 0s or more",
		},
		"an empty query": {
			func(o *Options) { o.Signals[1].Query = &Query{Expr: " \n"} },
			`signals[1].prometheus.query: " \n": must be an expression of PromQL`,
		},
		"no interval": {
			func(o *Options) { o.Forecast.Interval = time.Millisecond },
			"interval: 1ms: must be a whole number of milliseconds, at least 100ms",
		},
		"no server": {
			func(o *Options) { o.DefaultAddress = "" },
			`signals[1].prometheus.address: "": must be given, as Foresail was started without a Prometheus server`,
		},
		"no such address": {
			func(o *Options) { o.DefaultAddress = "ftp://me:geheim@x" },
			`signals[1].prometheus.address: "…@x": must be an http or https URL`,
		},
		"no seasonal server": {
			func(o *Options) { o.Seasonal = &SeasonalConfig{Query: Query{Expr: "s", Address: "x"}, Weeks: 1} },
			`seasonal.prometheus.address: "x": must be`,
		},
		"too many weeks": {
			func(o *Options) { o.Seasonal = &SeasonalConfig{Query: *query, Weeks: 13} },
			"seasonal.weeks: 13: must be from 1 to 12",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := defaults()
			o.Signals = append(o.Signals, Config{Name: CPU, Threshold: 0.7, Query: query})
			o.DefaultAddress, o.Servers = promAddress, clients(&fakeProm{})
			test.change(&o)
			_, err := New(o)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "geheim")
		})
	}
}

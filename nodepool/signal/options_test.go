package signal

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/crdtest"
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
seasonal: {query: s, weeks: 3}
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

func TestQueriesNeedAServer(t *testing.T) {
	query := Query{Expr: "q", NodeLabel: "node"}
	for name, test := range map[string]struct {
		change func(o *Options)
		want   string
	}{
		"valid": {func(*Options) {}, ""},
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
			`seasonal.address: "x": must be`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := defaults()
			o.Signals = append(o.Signals, Config{Name: CPU, Threshold: 0.7, Query: &query})
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

// The rules of the API are the only ones: with random values at and around the bounds, each spec that an API server
// accepts has signals.
func TestSpecsThatTheAPIServerAcceptsHaveSignals(t *testing.T) {
	crd := crdtest.Load(t, "../../manifests/crds/foresail.dev_workerpools.yaml")
	random := rand.New(rand.NewPCG(1, 2))
	accepted, rejected := 0, 0
	for range 300 {
		spec := randomSpec(random)
		object := map[string]any{"apiVersion": "foresail.dev/v1alpha1", "kind": "WorkerPool",
			"metadata": map[string]any{"name": "random"}, "spec": spec}
		data, err := yaml.Marshal(spec)
		require.NoError(t, err)
		crd.Default(object)
		if problems := crd.Validate(object); len(problems) > 0 {
			rejected++
			continue
		}
		accepted++
		o := OptionsOf(specOf(t, string(data)))
		o.DefaultAddress, o.Servers = promAddress, clients(&fakeProm{})
		_, err = New(o)
		require.NoError(t, err, "%s", data)
	}
	assert.Greater(t, accepted, 30)
	assert.Greater(t, rejected, 30)
}

// randomSpec has a few fields with values at and around their bounds.
func randomSpec(random *rand.Rand) map[string]any {
	one := func(values ...any) any { return values[random.IntN(len(values))] }
	some := func(fields map[string][]any) map[string]any {
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if random.IntN(6) == 0 {
				out[name] = one(fields[name]...)
			}
		}
		return out
	}
	query := map[string]any{"query": one("up", "up", "up", " "), "value": one("Sum", "Sum", "Sum", "Level")}
	signal := some(map[string][]any{
		"downThreshold": {"1n", "699m", "700m", "0"},
		"for":           {"-1s", "0s", "3m"},
	})
	signal["name"], signal["threshold"] = one("cpu", "cpu", "cpu", "requests"), one("700m", "700m", "1n", "0", "1e99")
	if one(true, true, true, false).(bool) {
		signal["prometheus"] = query
	}
	spec := some(map[string][]any{
		"interval":    {"1s", "15s", "5m", "301s", "0s", "1500ms"},
		"startupTime": {"0s", "1ns", "2m"},
		"forecast":    {"Enabled", "Disabled", "Off"},
	})
	spec["min"], spec["max"] = int64(0), int64(3)
	spec["provider"] = map[string]any{"simulated": map[string]any{}}
	spec["signals"] = []any{signal}
	if one(true, false, false).(bool) {
		spec["seasonal"] = map[string]any{
			"query": query["query"], "weeks": one(int64(0), int64(1), int64(12), int64(13)),
		}
	}
	return spec
}

package resource

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/foresail/foresail/pipeline"
)

func TestSample(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	app, proxy := container("app", "1250m", "100Mi"), container("proxy", "123456789n", "20Mi")
	part := container("part", "1", "1")
	delete(part.Usage, corev1.ResourceCPU)
	for name, test := range map[string]struct {
		config  Config
		metrics v1beta1.PodMetrics
		want    float64
		err     string
	}{
		"the sum of all": {Config{Name: "cpu"}, metricsOf("a", at, app, proxy), 1.373456789, ""},
		"bytes":          {Config{Name: "memory"}, metricsOf("a", at, app, proxy), 120 << 20, ""},
		"one container":  {Config{Name: "cpu", Container: "proxy"}, metricsOf("a", at, app, proxy), .123456789, ""},
		"idle":           {Config{Name: "cpu"}, metricsOf("a", at, container("app", "0", "1")), 0, ""},
		"others' lacks":  {Config{Name: "cpu", Container: "app"}, metricsOf("a", at, app, part), 1.25, ""},
		"no such one": {Config{Name: "cpu", Container: "ap"}, metricsOf("a", at, proxy, app), 0,
			`it has no container "ap", only app, proxy`},
		"no containers": {Config{Name: "cpu"}, metricsOf("a", at), 0, "its PodMetrics has no containers"},
		"a part is no sum": {Config{Name: "cpu"}, metricsOf("a", at, app, part), 0,
			`its container "part" has no usage of cpu`},
		"negative": {Config{Name: "cpu"}, metricsOf("a", at, container("app", "-1", "0")), 0,
			`its container "app" has a usage of -1 cpu: must be 0 or more`},
		"no timestamp": {Config{Name: "cpu"}, metricsOf("a", time.Time{}, app), 0, "its PodMetrics has no timestamp"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.config.sample(&test.metrics)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, at.UnixMilli(), got.T)
			assert.InDelta(t, test.want, got.V, 1e-9)
		})
	}
}

// What is to come is for the sink to refuse, and must not keep what comes after it from being taken.
func TestSampleFromTheFutureIsPassedOn(t *testing.T) {
	c := cpu()
	ahead := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	m := metricsOf("a", ahead, container("app", "1", "1"))
	got, err := c.sample(&m)
	require.NoError(t, err)
	assert.Equal(t, pipeline.Sample{T: ahead.UnixMilli(), V: 1}, got)
}

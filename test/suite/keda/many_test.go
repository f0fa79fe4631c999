//go:build long

package keda_test

import (
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"math"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed many.yaml
var manyYAML string

var (
	manyTemplate  = template.Must(template.New("many.yaml").Parse(manyYAML))
	scaledObjects = flag.Int("scaled-objects", 100, "how many ScaledObjects TestManyScaledObjects makes")
	scaledSpan    = flag.Duration("scaled-objects-span", 30*time.Second, "how long TestManyScaledObjects looks at them")
)

// held is what the replicas of Foresail hold together.
type held struct{ streams, goroutines, residentMiB float64 }

func (h held) String() string {
	return fmt.Sprintf("%.0f streams, %.0f goroutines, %.0f MiB", h.streams, h.goroutines, h.residentMiB)
}

func holding(t require.TestingT, ctx context.Context) (h held) {
	for _, replica := range shared.replicas {
		metrics, err := replica.Metrics(ctx)
		require.NoError(t, err)
		h.streams += metrics.Sum("foresail_keda_streams")
		h.goroutines += metrics.Sum("go_goroutines")
		h.residentMiB += metrics.Sum("process_resident_memory_bytes") / (1 << 20)
	}
	return h
}

// Every ScaledObject has two streams, on one of the replicas, for as long as it exists; nothing
// else is held for it.
func TestManyScaledObjects(t *testing.T) {
	load, source := startGateway(t, "many")
	load.Store(math.Float64bits(40))
	empty := holding(t, t.Context())
	t.Logf("without ScaledObjects: %s", empty)
	makeMany(t, source)
	client := shared.stack.Cluster.Client()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		list, err := client.AutoscalingV2().HorizontalPodAutoscalers("many").List(t.Context(), metav1.ListOptions{})
		require.NoError(c, err)
		active := 0
		for i := range list.Items {
			for _, x := range list.Items[i].Status.Conditions {
				if x.Type == autoscalingv2.ScalingActive && x.Status == corev1.ConditionTrue {
					active++
				}
			}
		}
		assert.Equal(c, *scaledObjects, active, "HPAs that read the forecast")
		assert.InDelta(c, 2**scaledObjects, holding(c, t.Context()).streams, 0)
	}, 10*time.Minute, time.Second)
	first := holding(t, t.Context())
	t.Logf("with %d ScaledObjects: %s", *scaledObjects, first)
	last := first
	for begun := time.Now(); time.Since(begun) < *scaledSpan; {
		pass(t, min(30*time.Second, *scaledSpan))
		last = holding(t, t.Context())
		t.Logf("after %s: %s", time.Since(begun).Round(time.Second), last)
	}
	each := (first.goroutines - empty.goroutines) / float64(*scaledObjects)
	assert.Less(t, last.goroutines-first.goroutines, each*float64(*scaledObjects)/10, "goroutines grow")

	require.NoError(t, client.CoreV1().Namespaces().Delete(t.Context(), "many", metav1.DeleteOptions{}))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Zero(c, holding(c, t.Context()).streams)
	}, 5*time.Minute, time.Second)
	t.Logf("after they have gone: %s", holding(t, t.Context()))
}

func makeMany(t *testing.T, source string) {
	_, err := shared.stack.Cluster.Apply(t.Context(),
		[]byte("{apiVersion: v1, kind: Namespace, metadata: {name: many}}"))
	require.NoError(t, err)
	parts, ctx := errgroup.WithContext(t.Context())
	parts.SetLimit(8)
	for i := range *scaledObjects {
		parts.Go(func() error {
			var manifest bytes.Buffer
			err := manyTemplate.Execute(&manifest,
				map[string]any{"Name": fmt.Sprint("app-", i), "Source": source, "Address": shared.address})
			if err != nil {
				return err
			}
			_, err = shared.stack.Cluster.Apply(ctx, manifest.Bytes())
			return err
		})
	}
	require.NoError(t, parts.Wait())
}

// Package checkpoint keeps what has been learned of the load of each PredictedMetric in a
// PredictedMetricCheckpoint. The elected replica writes them, and all replicas read them: so what
// was learned survives a restart, and replicas know the same. Without the kind, or without rights
// to it, all goes on without checkpoints.
package checkpoint

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/forecast/forecaster"
	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/hourly"
	"github.com/foresail/foresail/pipeline"
)

// Forecasts is the forecaster's access to learned loads.
type Forecasts interface {
	Checkpoint(key types.NamespacedName) (forecaster.Checkpoint, bool)
	Saved(key types.NamespacedName, c forecaster.Checkpoint)
	Restore(key types.NamespacedName, data []byte, follow bool) (bool, error)
	NoCheckpoint(key types.NamespacedName)
	Forget(key types.NamespacedName)
	WithoutCheckpoint() []types.NamespacedName
}

// Options configure Checkpoints. All are required but Namespaces.
type Options struct {
	Metrics    client.Reader    // PredictedMetrics, from a cache
	Client     client.WithWatch // checkpoints, from the API
	Forecasts  Forecasts
	Known      func() error // returns an error until all PredictedMetrics that there were at the start are followed
	Namespaces []string     // empty for all
	Now        func() time.Time
	Registerer prometheus.Registerer
}

// Checkpoints reads and writes the checkpoints of all PredictedMetrics.
type Checkpoints struct {
	*state
	lead chan struct{} // full while this replica leads
}

// state is shared by the reader and the writer.
type state struct {
	Options
	telemetry *telemetry
	leading   atomic.Bool
	failures  hourly.Log

	mu      sync.Mutex
	written map[types.NamespacedName]time.Time // when the checkpoint was written last, by this replica or another
}

// New returns Checkpoints, which do nothing until Run and Lead.
func New(o Options) *Checkpoints {
	s := &state{Options: o, telemetry: newTelemetry(o.Registerer), written: map[types.NamespacedName]time.Time{}}
	return &Checkpoints{state: s, lead: make(chan struct{}, 1)}
}

// Run reads checkpoints until the context ends, and then waits for Lead to write the last ones.
func (c *Checkpoints) Run(ctx context.Context) error {
	var readers sync.WaitGroup
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		readers.Go(func() { (&reader{c.state, namespace}).run(ctx) })
	}
	readers.Wait()
	c.lead <- struct{}{}
	<-c.lead
	return nil
}

// Lead writes checkpoints until the context ends, and then the last ones. The elected replica alone runs it.
func (c *Checkpoints) Lead(ctx context.Context) error {
	c.lead <- struct{}{}
	defer func() { <-c.lead }()
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("checkpoints"))
	w := &writer{state: c.state, tried: map[types.NamespacedName]time.Time{}}
	c.leading.Store(true)
	defer c.leading.Store(false)
	ticker := time.NewTicker(writeEach)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			w.flush(ctx)
			return nil
		case <-ticker.C:
			w.writeNext(ctx)
		}
	}
}

func (s *state) setWritten(key types.NamespacedName, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written[key] = at
}

const kind = "PredictedMetricCheckpoint"

func emptyObject() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return o
}

// emptyList returns a list whose objects are decoded one by one, so that a broken one does not hide the others.
func emptyList() *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	return l
}

// Object returns the object of a checkpoint, which goes with its PredictedMetric.
func Object(pm types.NamespacedName, uid types.UID, c *forecaster.Checkpoint,
	now time.Time) (*unstructured.Unstructured, error) {
	data, err := compress(c.Data)
	if err != nil {
		return nil, err
	}
	typed := &v1alpha1.PredictedMetricCheckpoint{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pm.Namespace, Name: pm.Name,
			OwnerReferences: []metav1.OwnerReference{keep.Reference(
				&v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Name: pm.Name, UID: uid}})},
		},
		Version: pipeline.CheckpointVersion, Learned: metav1.Duration{Duration: c.Learned.Round(time.Second)},
		Updated: metav1.NewTime(now), Data: data,
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return &unstructured.Unstructured{Object: fields}, err
}

func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// decompress returns no more bytes than a checkpoint may have, whatever it is given.
func decompress(data []byte) ([]byte, error) {
	if len(data) > v1alpha1.MaxCheckpointData {
		return nil, fmt.Errorf("%d bytes, of at most %d", len(data), v1alpha1.MaxCheckpointData)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, forecaster.MaxCheckpoint+1))
	if err == nil && len(out) > forecaster.MaxCheckpoint {
		return nil, fmt.Errorf("more than %d bytes, decompressed", forecaster.MaxCheckpoint)
	}
	return out, err
}

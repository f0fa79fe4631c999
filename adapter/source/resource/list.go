package resource

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/foresail/foresail/internal/metricsapi"
)

// listing is what came of one list: PodMetrics by the names of their pods, or why there are none.
type listing struct {
	at   time.Time
	pods map[string]*v1beta1.PodMetrics
	err  error
}

// list lists the PodMetrics of a namespace as soon as a slot is free.
func (s *Source) list(ctx context.Context, namespace string) *listing {
	select {
	case <-ctx.Done():
		return &listing{err: ctx.Err()}
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	}
	limited, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	began := s.options.Now()
	items, err := s.options.Client.PodMetricses(namespace).List(limited, metav1.ListOptions{})
	l := &listing{at: s.options.Now()}
	if ctx.Err() != nil {
		return l // nobody asks any more
	}
	s.telemetry.duration.Observe(l.at.Sub(began).Seconds())
	if err != nil {
		asked := metricsapi.List{
			What: fmt.Sprintf("the PodMetrics of the namespace %q", namespace), Timeout: s.options.Timeout,
			Grant: "the resource pods of metrics.k8s.io", Where: fmt.Sprintf("in the namespace %q", namespace),
		}
		failure := asked.Explain(err, limited.Err() != nil)
		s.telemetry.lists[failure.Result].Inc()
		l.err = failure
		return l
	}
	s.telemetry.lists[metricsapi.Success].Inc()
	l.pods = make(map[string]*v1beta1.PodMetrics, len(items.Items))
	for i := range items.Items {
		l.pods[items.Items[i].Name] = &items.Items[i]
	}
	return l
}

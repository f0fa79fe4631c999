package resource

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
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
		late := limited.Err() != nil
		ended := classify(err, late)
		s.telemetry.lists[ended].Inc()
		l.err = s.explain(ended, namespace, err)
		return l
	}
	s.telemetry.lists[resultSuccess].Inc()
	l.pods = make(map[string]*v1beta1.PodMetrics, len(items.Items))
	for i := range items.Items {
		l.pods[items.Items[i].Name] = &items.Items[i]
	}
	return l
}

// classify tells how a list failed; late says that its time was up.
func classify(err error, late bool) result {
	switch {
	case late, errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return resultTimeout
	case apierrors.IsNotFound(err):
		return resultMissing
	case apierrors.IsForbidden(err):
		return resultForbidden
	case apierrors.IsServiceUnavailable(err):
		return resultUnavailable
	default:
		return resultError
	}
}

// explain says what failed and what would help.
func (s *Source) explain(ended result, namespace string, err error) error {
	switch ended {
	case resultMissing:
		return fmt.Errorf("metrics.k8s.io is not served: install metrics-server: %w", err)
	case resultForbidden:
		return fmt.Errorf("the verb list on the resource pods of metrics.k8s.io is forbidden in the namespace %q: grant it: %w", namespace, err)
	case resultUnavailable:
		return fmt.Errorf("metrics.k8s.io is registered, but its server does not answer: see whether metrics-server is ready: %w", err)
	case resultTimeout:
		return fmt.Errorf("the PodMetrics of the namespace %q were not listed within %s: %w", namespace, s.options.Timeout, err)
	default:
		return fmt.Errorf("list the PodMetrics of the namespace %q: %w", namespace, err)
	}
}

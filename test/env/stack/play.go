package stack

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/env/loadgen"
)

// Moment is how an application stood at one second of a play.
type Moment struct {
	At   time.Duration // since the play began
	Rate float64       // requests per second that the profile asks for
	State
	// Load is the share of its time that a ready pod would need for its share of the rate; above 1
	// requests queue up.
	Load float64
	// Served is what the HPA reads in this moment; Err is why it reads nothing.
	Served float64
	Err    error
	Stats  loadgen.Stats
}

// Run is a play from beginning to end.
type Run struct {
	App     App
	Moments []Moment
	Report  loadgen.Report
}

// Play sends requests to an application by a profile, and observes it each second.
func (s *Stack) Play(ctx context.Context, a App, profile loadgen.Profile, each func(Moment)) (Run, error) {
	pods, err := loadgen.NewReadyPods(s.Cluster.Client(), a.Namespace, a.Selector(), 0)
	if err != nil {
		return Run{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := pods.Start(ctx); err != nil {
		return Run{}, fmt.Errorf("watch the pods of %s/%s: %w", a.Namespace, a.Name, err)
	}
	generator, err := loadgen.New(loadgen.Config{Profile: profile, Endpoints: pods})
	if err != nil {
		return Run{}, err
	}
	metrics, err := externalmetrics.NewForConfig(s.Cluster.RESTConfig())
	if err != nil {
		return Run{}, err
	}
	run := Run{App: a}
	parts, ctx := errgroup.WithContext(ctx)
	watching, stop := context.WithCancel(ctx)
	parts.Go(func() (err error) {
		defer stop()
		run.Report, err = generator.Run(ctx)
		return err
	})
	parts.Go(func() error {
		w := watcher{stack: s, app: a, profile: profile, stats: generator.Stats, metrics: metrics}
		var err error
		run.Moments, err = w.watch(watching, each)
		return err
	})
	err = parts.Wait()
	return run, err
}

// Carry has an application carry a load exactly, without a request, and observes it each second
// until ctx ends.
func (s *Stack) Carry(ctx context.Context, a App, load loadgen.Profile, each func(Moment)) error {
	metrics, err := externalmetrics.NewForConfig(s.Cluster.RESTConfig())
	if err != nil {
		return err
	}
	begun := time.Now()
	s.Shares.Set(a.Namespace, a.Name, func() float64 { return load.Rate(time.Since(begun)) * a.ServiceTime.Seconds() })
	defer s.Shares.Set(a.Namespace, a.Name, nil)
	none := func() loadgen.Stats { return loadgen.Stats{} }
	_, err = watcher{stack: s, app: a, profile: load, stats: none, metrics: metrics}.watch(ctx, each)
	return err
}

// watcher looks at an application under load.
type watcher struct {
	stack   *Stack
	app     App
	profile loadgen.Profile
	stats   func() loadgen.Stats
	metrics externalmetrics.ExternalMetricsClient
}

func (w watcher) watch(ctx context.Context, each func(Moment)) ([]Moment, error) {
	begun := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var moments []Moment
	for {
		select {
		case <-ctx.Done():
			return moments, nil
		case <-ticker.C:
		}
		m, err := w.look(ctx, time.Since(begun))
		if err != nil && ctx.Err() == nil {
			return moments, err
		}
		if err == nil {
			moments = append(moments, m)
			if each != nil {
				each(m)
			}
		}
	}
}

func (w watcher) look(ctx context.Context, at time.Duration) (Moment, error) {
	state, err := w.stack.Look(ctx, w.app)
	if err != nil {
		return Moment{}, err
	}
	m := Moment{At: at, Rate: w.profile.Rate(at), State: state, Stats: w.stats()}
	if state.Ready > 0 {
		m.Load = m.Rate * w.app.ServiceTime.Seconds() / float64(state.Ready)
	}
	m.Served, m.Err = ReadMetric(w.metrics, w.app)
	return m, nil
}

// ReadMetric reads what the HPA of an application reads, through the API server.
func ReadMetric(client externalmetrics.ExternalMetricsClient, a App) (float64, error) {
	list, err := client.NamespacedMetrics(a.Namespace).List(a.Metric,
		labels.SelectorFromSet(labels.Set{"predictedmetric": a.Name}))
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, item := range list.Items {
		sum += float64(item.Value.MilliValue()) / 1000
	}
	return sum, nil
}

// SecondsAbove is how long the rate was more than the ready pods can take at the threshold.
func (r Run) SecondsAbove() int {
	return r.secondsOver(r.App.Threshold.AsApproximateFloat64())
}

// SecondsOverloaded is how long the rate was more than the ready pods can take at all, so that
// requests queued up.
func (r Run) SecondsOverloaded() int { return r.secondsOver(1) }

func (r Run) secondsOver(load float64) int {
	return r.seconds(func(m Moment) float64 {
		if m.Load > load {
			return 1
		}
		return 0
	})
}

// Shortfall is how many pods were missing to take the rate at the threshold, over time, in pod-seconds.
func (r Run) Shortfall() int {
	tau := r.App.Threshold.AsApproximateFloat64()
	return r.seconds(func(m Moment) float64 {
		return max(0, m.Rate*r.App.ServiceTime.Seconds()/tau-float64(m.Ready))
	})
}

// PodSeconds is the replicas asked for over time.
func (r Run) PodSeconds() int {
	return r.seconds(func(m Moment) float64 { return float64(m.Replicas) })
}

// seconds sums a value over the seconds. A moment stands for the time since the one before: on a
// busy machine some come late.
func (r Run) seconds(value func(Moment) float64) int {
	sum, before := 0.0, time.Duration(0)
	for _, m := range r.Moments {
		sum += value(m) * (m.At - before).Seconds()
		before = m.At
	}
	return int(math.Round(sum))
}

// Peak is the most replicas that were asked for.
func (r Run) Peak() int {
	n := 0
	for _, m := range r.Moments {
		n = max(n, m.Replicas)
	}
	return n
}

// Reached returns when so many replicas were first asked for; false if never.
func (r Run) Reached(replicas int) (time.Duration, bool) {
	for _, m := range r.Moments {
		if m.Replicas >= replicas {
			return m.At, true
		}
	}
	return 0, false
}

package scaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler/hpa"
	"github.com/foresail/foresail/pipeline"
)

// route is one of the metrics that Foresail serves and the target that an HPA has for it.
type route struct {
	metric  string
	average bool
	target  func(threshold float64) int64 // in milli-units
	exact   bool                          // the HPA has no tolerance of its own
}

var (
	loadTotal  = route{metric: serving.LoadTotal, average: true, target: milli}
	loadPerPod = route{metric: serving.Load, target: milli}
	replicas   = route{metric: serving.Replicas, average: true, target: func(float64) int64 { return 1000 },
		exact: true}
)

// throughHPA returns Foresail with an HPA that reads one of its metrics each 15 s. A forecast is a
// function of what has been read alone, so it is made when it is asked for.
func throughHPA(r route) func(Setup) (lab.Scaler, error) {
	return func(s Setup) (lab.Scaler, error) {
		behavior := s.Behavior
		if r.exact {
			behavior = withoutTolerance(behavior)
		}
		h, err := hpa.New(s.Min, s.Max, behavior, hpa.DefaultFlags())
		if err != nil {
			return nil, err
		}
		feeds, err := s.feeds()
		if err != nil {
			return nil, err
		}
		var all []*served
		for _, f := range feeds {
			all = append(all, newServed(f))
		}
		metrics := func(v *lab.View) []hpa.Metric {
			read := make([]hpa.Metric, len(all))
			for i, x := range all {
				total, err := x.read(v, r.metric)
				read[i] = hpa.External{Total: total, Target: r.target(x.feed.pipeline.Params().Threshold),
					Average: r.average, Err: err}
			}
			return read
		}
		scaled := autoscaled{clock: newClock(s.Seed, "the HPA", hpaPeriod), hpa: h, metrics: metrics, pods: podsOf}
		return &forecasting{autoscaled: scaled, feed: feeds[0]}, nil
	}
}

// forecasting is an HPA that reads forecasts, the first of which Forecast returns.
type forecasting struct {
	autoscaled
	feed *feed
}

// Forecast implements Forecaster.
func (f *forecasting) Forecast() (pipeline.Forecast, bool) { return f.feed.last, f.feed.last.Now != 0 }

// withoutTolerance returns a behaviour with a tolerance of zero in both directions.
func withoutTolerance(b *autoscalingv2.HorizontalPodAutoscalerBehavior) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	exact := &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	if b != nil {
		exact = b.DeepCopy()
	}
	for _, rules := range []**autoscalingv2.HPAScalingRules{&exact.ScaleUp, &exact.ScaleDown} {
		if *rules == nil {
			*rules = &autoscalingv2.HPAScalingRules{}
		}
		(*rules).Tolerance = &resource.Quantity{}
	}
	return exact
}

// served is a PredictedMetric as a serving.Reader.
type served struct {
	feed     *feed
	snapshot snapshot.Snapshot
}

func newServed(f *feed) *served { return &served{feed: f} }

var (
	theMetric   = types.NamespacedName{Namespace: "lab", Name: "load"}
	theSelector = serving.ByName(theMetric.Name)
)

// read makes a forecast and reads one of the metrics that are served of it, in milli-units.
func (s *served) read(v *lab.View, metric string) (int64, error) {
	p := s.feed.pipeline.Params()
	s.snapshot = snapshot.Snapshot{
		Metric: theMetric, TargetKind: "Deployment", TargetName: "load", Threshold: p.Threshold,
		StaleAfter: p.StaleAfter,
		At:         time.UnixMilli(v.Now), NewestSample: time.UnixMilli(v.Now),
	}
	for _, pod := range v.Pods {
		if pod.IsReady(v.Now) {
			s.snapshot.Ready++
		}
	}
	s.snapshot.Forecast, s.snapshot.Decision, s.snapshot.Err = s.feed.forecast(v)
	s.snapshot.Combined = snapshot.Combine([]*snapshot.Snapshot{&s.snapshot})
	item, err := serving.Read(s, serving.Query{Namespace: theMetric.Namespace, Selector: theSelector, Metric: metric,
		Now: s.snapshot.At})
	return item.Milli, err
}

// Get implements serving.Reader.
func (s *served) Get(metric types.NamespacedName) (snapshot.Snapshot, bool) {
	return s.snapshot, metric == theMetric
}

// List implements serving.Reader.
func (s *served) List(string) []snapshot.Snapshot { return []snapshot.Snapshot{s.snapshot} }

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Default fills in every absent field that has a default, as the API server does. signals[].for depends on the source of
// the signal and stays absent.
func (s *WorkerPoolSpec) Default() {
	setDefault(&s.MaxBatchUp, 2)
	setDefault(&s.MaxBatchDown, 1)
	if len(s.Signals) == 0 {
		s.Signals = []PoolSignal{{Name: "requests", Threshold: resource.MustParse("700m")}}
	}
	for i := range s.Signals {
		if query := s.Signals[i].Prometheus; query != nil {
			setString(&query.Value, PoolValueSum)
		}
	}
	setString(&s.Mode, PoolModeAny)
	s.Pending.setDefaults()
	s.Idle.setDefaults()
	setSpan(&s.Cooldown.Up, 5*time.Minute)
	setSpan(&s.Cooldown.Down, 10*time.Minute)
	s.Seasonal.setDefaults()
	s.Forecast.setDefaults()
	setQuantity(&s.Market.SpotRatio, "0")
	setSpan(&s.Join.Timeout, 10*time.Minute)
	setSpan(&s.Join.KeepFailedFor, 15*time.Minute)
	setSpan(&s.Drain.Timeout, 5*time.Minute)
	if len(s.RemovalOrder) == 0 {
		s.RemovalOrder = []RemovalScorer{RemoveFullestZone, RemoveIdlest, RemoveFewestPods, RemoveOldest}
	}
	s.Provider.setDefaults()
	if d := s.State.DynamoDB; d != nil {
		setString(&d.HashKey, "clusterId")
	}
}

func (p *PendingPolicy) setDefaults() {
	setSpan(&p.For, 30*time.Second)
	setDefault(&p.PodsPerNode, 10)
}

func (p *IdlePolicy) setDefaults() {
	setSpan(&p.For, 10*time.Minute)
	setQuantity(&p.CPU, "300m")
	setQuantity(&p.Memory, "500m")
}

func (f *SeasonalFloor) setDefaults() {
	if f == nil {
		return
	}
	setString(&f.Prometheus.Value, PoolValueSum)
	setDefault(&f.Weeks, 1)
	setQuantity(&f.MinConfidence, "500m")
}

func (f *PoolForecast) setDefaults() {
	setSpan(&f.Interval, 15*time.Second)
	setSpan(&f.Window, 15*time.Minute)
	setSpan(&f.RedistributionTimeout, 3*time.Minute)
	setSpan(&f.StartupTime, 2*time.Minute)
	setSpan(&f.HorizonMin, 30*time.Second)
	setSpan(&f.HorizonMax, 10*time.Minute)
	setQuantity(&f.ScaleDownMargin, "300m")
}

func (p *PoolProvider) setDefaults() {
	if e := p.EC2; e != nil {
		setString(&e.LaunchTemplateVersion, "$Default")
		setString(&e.TagPrefix, "foresail.dev")
	}
	if s := p.Simulated; s != nil {
		setSpan(&s.JoinDelay, 30*time.Second)
		if len(s.Zones) == 0 {
			s.Zones = []string{"a", "b"}
		}
		if s.Shape == nil {
			s.Shape = map[string]resource.Quantity{
				"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("110"),
			}
		}
		setString(&s.Namespace, "foresail-simulated")
	}
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func setString[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func setSpan(field **metav1.Duration, value time.Duration) {
	setDefault(field, metav1.Duration{Duration: value})
}

func setQuantity(field **resource.Quantity, value string) {
	setDefault(field, resource.MustParse(value))
}

// Package evaluationtest has metrics of Foresail, and a server that returns them, for tests of
// package evaluation.
package evaluationtest

import (
	"math"
	"time"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/world/fluid"
)

// Series is one of a server.
type Series struct {
	Labels  map[string]string // with __name__
	Samples []Sample
}

// Sample is one of a series.
type Sample struct {
	At    time.Time
	Value float64
}

// Scrape is what a replica of Foresail exposed at one time: values by the names of metrics without foresail_.
type Scrape struct {
	At     time.Time
	Values map[string]float64
}

// Exposed returns the series of what a replica exposed of a PredictedMetric.
func Exposed(namespace, name, pod string, scrapes []Scrape) (all []Series) {
	index := map[string]int{}
	for _, s := range scrapes {
		for metric, v := range s.Values {
			i, ok := index[metric]
			if !ok {
				i = len(all)
				index[metric] = i
				labels := map[string]string{"__name__": "foresail_" + metric, "namespace": namespace,
					"predictedmetric": name, "pod": pod, "instance": pod + ":8443"}
				switch metric {
				case "forecast_error_ratio", "forecast_late_ratio":
					labels["over"] = "1h"
				case "sample_interval_seconds":
					labels["source"] = "pods"
				}
				all = append(all, Series{Labels: labels})
			}
			all[i].Samples = append(all[i].Samples, Sample{s.At, v})
		}
	}
	return all
}

// The fleet of Ran.
const (
	Threshold = 0.7
	Min       = 2
	Max       = 30
	Startup   = 25 * time.Second
	Every     = 15 * time.Second // it is scraped
	capacity  = 100
)

// shop is a load that a day has, with a campaign each hour for which people come within two minutes.
type shop struct{ begin time.Time }

// Rate implements lab.Load.
func (s shop) Rate(t int64) float64 {
	at := s.begin.Add(time.Duration(t) * time.Millisecond)
	hour := float64(at.Hour()) + at.Sub(at.Truncate(time.Hour)).Hours()
	rate := 420 - 260*math.Cos(2*math.Pi*(hour-4)/24)
	minute := 60 * (hour - math.Floor(hour))
	campaign := max(0, min((minute-20)/2, 1, (45-minute)/10))
	return rate * (1 + 0.6*campaign)
}

// Ran returns what a replica of Foresail would have exposed from a time on, while a simulated fleet
// was scaled by it.
func Ran(from time.Time, length time.Duration) []Scrape {
	load := shop{from}
	made, err := scaler.New("foresail-total", scaler.Setup{
		Threshold: Threshold, Min: Min, Max: Max, Params: scaler.RecommendedParams(),
		Behavior: scaler.RecommendedBehavior(), Startup: Startup, Seed: 99,
	})
	if err != nil {
		panic(err) // of constants
	}
	world := fluid.New(fluid.Config{Load: load, Seed: 99, Min: Min, Max: Max, Warm: 4, Capacity: capacity,
		Startup: Startup})
	record := lab.Run(world, made, lab.Span{Length: length}, nil)
	var out []Scrape
	for i, s := range record.Seconds {
		if (i+1)%int(Every.Seconds()) != 0 {
			continue
		}
		out = append(out, Scrape{from.Add(time.Duration(i+1) * time.Second), map[string]float64{
			"ready_pods": float64(s.Ready), "target_replicas": float64(s.Target), "load": s.Offered,
			"load_per_instance": s.Offered / float64(s.Ready),
			"threshold":         Threshold, "startup_time_seconds": Startup.Seconds(), "sample_interval_seconds": 1,
			"forecast_error_ratio": 0.81, "forecast_late_ratio": 0.006, "forecast_lateness_ratio": 0.01,
		}})
	}
	return out
}

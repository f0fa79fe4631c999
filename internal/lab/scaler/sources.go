package scaler

import (
	"fmt"
	"time"

	"github.com/foresail/foresail/internal/lab"
)

// Sources are how scalers get to see how busy pods are.
type Sources struct {
	Foresail lab.Source
	Paper    lab.Source
	KEDA     lab.Source // what Prometheus has of the gauge
	Kubelet  lab.Source // CPU as the kubelet samples it; metrics-server collects it, see MetricsServer

	// MetricsServer is how often metrics-server collects from the kubelet, and when within that time.
	MetricsServer      time.Duration
	MetricsServerPhase time.Duration
}

// DefaultSources returns the sources of the model: Foresail reads pods each second; the paper's
// pods push readings of a second in batches of five; Prometheus scrapes a gauge over 5 s each 5 s;
// the kubelet samples CPU over 10 s, which metrics-server collects each 15 s. When within their
// periods they do so is drawn from the seed.
func DefaultSources(seed uint64) Sources {
	at := func(of string, period time.Duration) time.Duration {
		return (time.Duration(phase(seed, of, period)) * time.Millisecond).Truncate(time.Second)
	}
	return Sources{
		Foresail: lab.EverySecond(),
		Paper: lab.Source{
			Window: time.Second, Period: time.Second,
			Batch: 5 * time.Second, BatchPhase: at("the paper's batches", 5*time.Second),
		},
		KEDA: lab.Source{Window: 5 * time.Second, Period: 5 * time.Second, Phase: at("scrapes", 5*time.Second)},
		Kubelet: lab.Source{Window: 10 * time.Second, Period: 10 * time.Second,
			Phase: at("the kubelet", 10*time.Second)},

		MetricsServer: 15 * time.Second, MetricsServerPhase: at("metrics-server", 15*time.Second),
	}
}

// check rejects times that are not whole seconds, which meters do not resolve.
func (s *Sources) check() error {
	for _, x := range []struct {
		name   string
		source lab.Source
	}{
		{"foresail", s.Foresail},
		{"paper", s.Paper},
		{"keda", s.KEDA},
		{"kubelet", s.Kubelet},
		{"metricsServer", lab.Source{Window: time.Second, Period: s.MetricsServer, Phase: s.MetricsServerPhase}},
	} {
		for _, v := range []struct {
			field        string
			value, least time.Duration
		}{
			{"window", x.source.Window, time.Second},
			{"period", x.source.Period, time.Second},
			{"phase", x.source.Phase, 0},
			{"batch", x.source.Batch, 0},
			{"batchPhase", x.source.BatchPhase, 0},
		} {
			if v.value < v.least || v.value%time.Second != 0 {
				return fmt.Errorf("sources.%s.%s: %s: must be whole seconds, at least %s", x.name, v.field, v.value,
					v.least)
			}
		}
	}
	return nil
}

// latest returns the newest reading of a pod, which can be read since some time, that can be seen
// at a time: the mean over the window, and when it was taken; false before there is one.
func latest(s lab.Source, p *lab.Pod, since, now int64) (value float64, t int64, ok bool) {
	period, ph := s.Period.Milliseconds(), s.Phase.Milliseconds()
	t = lab.AtOrBefore(now-s.Lag.Milliseconds(), ph, period)
	begin := max(0, since, t-s.Window.Milliseconds())
	if t >= p.Ended || begin >= t {
		return 0, 0, false
	}
	return p.Busy.Mean(begin, t), t, true
}

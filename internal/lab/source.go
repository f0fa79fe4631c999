package lab

import (
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Source is how readings of a pod reach a scaler: a gauge that is the mean over a Window, read each Period, which can be
// seen Lag later or, where they come in batches, with the next one.
type Source struct {
	Window time.Duration
	Period time.Duration
	Phase  time.Duration // when within a period it is read
	Lag    time.Duration
	Batch  time.Duration // 0 = each reading on its own
}

// EverySecond is a pod's own endpoint read each second, as the source "pods" of a PredictedMetric does.
func EverySecond() Source { return Source{Window: time.Second, Period: time.Second} }

// Read appends the readings of a meter that can be seen now, of times after from, in order of time. A pod is read while
// it is ready.
func (s Source) Read(p *Pod, m *Meter, from, now int64, out []pipeline.Sample) []pipeline.Sample {
	period, phase := s.Period.Milliseconds(), s.Phase.Milliseconds()
	from = max(from, p.Ready)
	t := phase + ((from-phase)/period+1)*period
	for ; t <= now && t < p.Ended && s.seen(t) <= now; t += period {
		begin := max(p.Ready, t-s.Window.Milliseconds())
		if begin < t {
			out = append(out, pipeline.Sample{T: t, V: m.Mean(begin, t)})
		}
	}
	return out
}

// seen returns when a reading of a time can be seen. It does not fall as t rises.
func (s Source) seen(t int64) int64 {
	t += s.Lag.Milliseconds()
	if b := s.Batch.Milliseconds(); b > 0 {
		phase := s.Phase.Milliseconds() % b
		t = phase + (t-phase+b-1)/b*b
	}
	return t
}

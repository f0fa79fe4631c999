package lab

import (
	"time"

	"github.com/foresail/foresail/pipeline"
)

// Source is how readings of a pod reach a scaler: a gauge that is the mean over a Window, read each
// Period, which can be seen Lag later or, where they come in batches, Lag after the next one.
// Window, Period, Phase, Batch and BatchPhase are whole seconds: a meter counts whole seconds.
type Source struct {
	Window     time.Duration
	Period     time.Duration
	Phase      time.Duration // when within a period it is read
	Lag        time.Duration
	Batch      time.Duration // 0 = each reading on its own
	BatchPhase time.Duration // when within that time batches go out
}

// EverySecond is a pod's own endpoint read each second, as the source "pods" of a PredictedMetric
// does. The forecast that is served was made up to a second ago, of readings some tenths of a
// second old.
func EverySecond() Source {
	return Source{Window: time.Second, Period: time.Second, Lag: time.Second}
}

// Read appends the readings of a meter that can be seen now, of times after from, in order of time.
// A pod is read while it is ready.
func (s Source) Read(p *Pod, m *Meter, from, now int64, out []pipeline.Sample) []pipeline.Sample {
	if p.Ready >= now {
		return out
	}
	period, phase := s.Period.Milliseconds(), s.Phase.Milliseconds()
	from = max(from, p.Ready)
	t := AtOrBefore(from, phase, period) + period
	for ; t <= now && t < p.Ended && s.seen(t) <= now; t += period {
		begin := max(0, p.Ready, t-s.Window.Milliseconds())
		if begin < t {
			out = append(out, pipeline.Sample{T: t, V: m.Mean(begin, t)})
		}
	}
	return out
}

// seen returns when a reading of a time can be seen. It does not fall as t rises.
func (s Source) seen(t int64) int64 {
	if b := s.Batch.Milliseconds(); b > 0 {
		t = -AtOrBefore(-t, -s.BatchPhase.Milliseconds(), b) // at or after
	}
	return t + s.Lag.Milliseconds()
}

// AtOrBefore is the newest time, no later than t, of those a period apart of which the phase is
// one. All are in one unit.
func AtOrBefore(t, phase, period int64) int64 {
	past := (t - phase) % period
	if past < 0 {
		past += period
	}
	return t - past
}

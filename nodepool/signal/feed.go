package signal

import (
	"fmt"
	"slices"

	"k8s.io/klog/v2"

	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

// feed keeps the last answer of a server, and the demand that is added to it.
type feed struct {
	poller
	demand samples.Series
	err    error // of the last answer
	name   string
	logged string // the last logged error
}

func newFeed(p poller, name string) feed { return feed{poller: p, name: name} }

// receive passes an answer that has arrived to add, and records the error of the query or of add.
func (f *feed) receive(log klog.Logger, add func(*pendingQuery) error) {
	answer := f.finished()
	if answer == nil {
		return
	}
	f.err = answer.err
	if f.err == nil {
		f.err = add(answer)
	}
	if f.err == nil {
		f.answered = answer.to
	}
	f.log(log)
}

// log logs when queries begin to fail, fail for another reason, and succeed again.
func (f *feed) log(log klog.Logger) {
	text := ""
	if f.err != nil {
		text = f.err.Error()
	}
	if text == f.logged {
		return
	}
	f.logged = text
	if f.err == nil {
		log.Info("The signal can be read again", "signal", f.name)
		return
	}
	log.Error(f.err, "The signal cannot be read", "signal", f.name)
}

// withCause adds the error of the last answer, if any, to the error of a forecast.
func (f *feed) withCause(err error) error {
	if err == nil || f.err == nil {
		return err
	}
	return fmt.Errorf("%w: %w", f.err, err)
}

// recordDemand adds the demand at a time, and drops demand before the window. It keeps the first and the last value of
// an interval.
func (f *feed) recordDemand(now int64, demand float64) {
	if n := len(f.demand); n > 1 && now-f.demand[n-2].T < f.Step.Milliseconds()/2 {
		f.demand = f.demand[:n-1]
	}
	f.demand.Add(pipeline.Sample{T: now, V: demand})
	f.demand.Trim(now - f.window)
}

// rewind drops what is later than now, and has the whole window queried again.
func (f *feed) rewind(now int64) {
	f.demand = f.demand.Before(now)
	f.reset()
}

// extend adds newer samples, which replace those at the same time or later. What cannot be a load, such as a negative
// value, is unknown: it is left out.
func extend(s samples.Series, newer []pipeline.Sample) samples.Series {
	unit := gate.Unit(gate.Unit(1, s), newer)
	newer = slices.DeleteFunc(slices.Clone(newer), func(x pipeline.Sample) bool {
		_, err := gate.Number(x.V, unit)
		return err != nil
	})
	if len(newer) == 0 {
		return s
	}
	return append(s.Before(newer[0].T), newer...)
}

package signal

import (
	"fmt"

	"k8s.io/klog/v2"

	"github.com/foresail/foresail/internal/samples"
	"github.com/foresail/foresail/pipeline"
)

// feed keeps what a server said, and what is demanded beside.
type feed struct {
	poller
	demand samples.Series
	err    error // why the last answer brought nothing, nil if it did
	name   string
	logged string // the error that was logged last
}

func newFeed(p poller, name string) feed { return feed{poller: p, name: name} }

// receive hands the answer that has come, if one has, to take, and notes why it could not be used.
func (f *feed) receive(log klog.Logger, take func(*flight) error) {
	answer := f.landed()
	if answer == nil {
		return
	}
	f.err = answer.err
	if f.err == nil {
		f.err = take(answer)
	}
	if f.err == nil {
		f.whole = answer.to
	}
	f.log(log)
}

// log reports when queries begin to fail, fail for another reason, and work again.
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

// because adds to an error of a forecast why there is nothing to make one from.
func (f *feed) because(err error) error {
	if err == nil || f.err == nil {
		return err
	}
	return fmt.Errorf("%w: %w", f.err, err)
}

// note keeps the demand at a time, and forgets that of before the window. Of many in one interval the first and the last
// are kept.
func (f *feed) note(now int64, demand float64) {
	if n := len(f.demand); n > 1 && now-f.demand[n-2].T < f.Step.Milliseconds()/2 {
		f.demand = f.demand[:n-1]
	}
	f.demand.Add(pipeline.Sample{T: now, V: demand})
	f.demand.Trim(now - f.window)
}

// forgetFrom forgets what is later than now, and what was asked for.
func (f *feed) forgetFrom(now int64) {
	f.demand = f.demand.Before(now)
	f.forget()
}

// extend adds newer samples, which take the place of those that are not older.
func extend(s samples.Series, newer []pipeline.Sample) samples.Series {
	if len(newer) == 0 {
		return s
	}
	return append(s.Before(newer[0].T), newer...)
}

package remotewrite

import (
	"sync/atomic"
)

// strays are examples of series of a metric that were nobody's.
type strays struct {
	withoutPod, unknownPod, ambiguous example
}

// example is one series, kept until it is cleared.
type example struct{ text atomic.Pointer[string] }

// note keeps a series unless there is one.
func (e *example) note(l labels) {
	if e.text.Load() != nil {
		return
	}
	text := shorten(l.String())
	e.text.CompareAndSwap(nil, &text)
}

// get returns the example; "" without one.
func (e *example) get() string {
	if text := e.text.Load(); text != nil {
		return *text
	}
	return ""
}

func (e *example) clear() { e.text.Store(nil) }

// shorten keeps what is told of a series readable.
func shorten(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

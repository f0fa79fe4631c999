package remotewrite

import (
	"sync/atomic"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
)

// example is one series, kept until it is cleared. It is safe for concurrent use.
type example struct{ text atomic.Pointer[string] }

// note keeps a series unless there is one.
func (e *example) note(l decode.Labels) {
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

// shorten keeps descriptions of series readable.
func shorten(s string) string {
	const limit = 400
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}

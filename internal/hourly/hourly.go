// Package hourly says when a failure that goes on is logged.
package hourly

import (
	"maps"
	"sync"
	"time"
)

// Log lets each failure be logged once an hour. It is safe for concurrent use. The zero value has
// logged nothing.
type Log struct {
	mu sync.Mutex
	at map[string]time.Time // by what failed
}

// Due returns whether it is time to log that something failed, which is taken to be done then.
func (l *Log) Due(what string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.at, func(_ string, at time.Time) bool { return now.Sub(at) >= time.Hour })
	if _, ok := l.at[what]; ok {
		return false
	}
	if l.at == nil {
		l.at = map[string]time.Time{}
	}
	l.at[what] = now
	return true
}

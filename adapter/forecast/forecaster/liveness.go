package forecaster

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// hangLimit is after how long without any progress the forecaster hangs. A round takes less
	// than a second; on a machine without free time it may take many times as long, which a restart
	// would make worse.
	hangLimit = 3 * time.Minute
	// maxUnwatched caps what the time between two calls of Alive counts. A process that was paused,
	// or a machine that slept, finds a clock that has gone on without it.
	maxUnwatched = 30 * time.Second
)

// liveness distinguishes a forecaster that hangs from one that was paused or is slow.
type liveness struct {
	progress atomic.Int64 // steps, forecasts and rounds that were made

	mu      sync.Mutex
	seen    int64 // progress at the last call of stalled
	checked time.Time
	idle    time.Duration // without progress, as far as it was watched
}

// stalled returns the time without progress. The result rises with the calls: it needs some every maxUnwatched.
func (l *liveness) stalled(now time.Time) time.Duration {
	progress := l.progress.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.checked.IsZero() || progress != l.seen {
		l.idle = 0
	} else {
		l.idle += min(max(0, now.Sub(l.checked)), maxUnwatched)
	}
	l.seen, l.checked = progress, now
	return l.idle
}

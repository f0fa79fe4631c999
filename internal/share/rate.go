package share

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate gives each tenant the same rate, with a burst. It is safe for concurrent use.
type Rate struct {
	limit rate.Limit // a second
	burst int

	mu       sync.Mutex
	limiters map[string]*rate.Limiter
	sweep    int // how many limiters there are when unused ones are dropped
}

// NewRate returns a Rate of so many a second.
func NewRate(perSecond float64, burst int) *Rate {
	return &Rate{limit: rate.Limit(perSecond), burst: burst, limiters: map[string]*rate.Limiter{}, sweep: 64}
}

// Reserve reserves a turn of a tenant, and returns how long it must wait for that.
func (r *Rate) Reserve(tenant string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.limiters[tenant]
	if l == nil {
		r.drop(now)
		l = rate.NewLimiter(r.limit, r.burst)
		r.limiters[tenant] = l
	}
	return l.ReserveN(now, 1).DelayFrom(now)
}

// drop drops limiters that are as good as new ones, once there are twice as many as were in use.
func (r *Rate) drop(now time.Time) {
	if len(r.limiters) < r.sweep {
		return
	}
	for tenant, l := range r.limiters {
		if l.TokensAt(now) >= float64(r.burst) {
			delete(r.limiters, tenant)
		}
	}
	r.sweep = max(64, 2*len(r.limiters))
}

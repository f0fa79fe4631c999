package workload

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Model is how a pod serves requests.
type Model struct {
	// ServiceTime is how long one request holds the pod's event loop, on average; above 0.
	ServiceTime time.Duration
	// Jitter spreads service times evenly over ServiceTime × (1 ± Jitter); from 0, all alike, to 1.
	Jitter float64
	// QueueLimit is how many requests, waiting and in service, a pod holds; further ones are
	// refused. Above 0.
	QueueLimit int
}

// DefaultModel returns a pod that serves 50 requests a second at most.
func DefaultModel() Model {
	return Model{ServiceTime: 20 * time.Millisecond, Jitter: 0.5, QueueLimit: 1000}
}

// Validate names the field that is out of its range.
func (m Model) Validate() error {
	switch {
	case m.ServiceTime <= 0:
		return fmt.Errorf("service time %v: must be above 0", m.ServiceTime)
	case !(m.Jitter >= 0 && m.Jitter <= 1):
		return fmt.Errorf("jitter %v: must be from 0 to 1", m.Jitter)
	case m.QueueLimit <= 0:
		return fmt.Errorf("queue limit %d: must be above 0", m.QueueLimit)
	}
	return nil
}

// draw returns the service time of one request.
func (m Model) draw(random *rand.Rand) time.Duration {
	return time.Duration(float64(m.ServiceTime) * (1 + m.Jitter*(2*random.Float64()-1)))
}

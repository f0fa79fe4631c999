package loadgen

import (
	"slices"
	"time"
)

// slowStartFloor is the least share of traffic that an endpoint gets while it starts slowly.
const slowStartFloor = 0.1

// Balancer spreads requests over endpoints by smooth weighted round robin. An endpoint seen for the
// first time is given a weight that grows in a straight line from slowStartFloor to 1 over
// slowStart; 0 gives it full weight at once. Times are spans since an origin of the caller's
// choice. The zero value has no slow start. It is for one goroutine.
type Balancer struct {
	slowStart time.Duration
	addresses []string // as last given, to notice changes
	backends  []*backend
}

type backend struct {
	address string
	since   time.Duration // when it was first seen
	credit  float64       // how much it is owed, in weights; the largest is served next
}

// NewBalancer returns a balancer with a slow start of a span that is 0 or above.
func NewBalancer(slowStart time.Duration) *Balancer { return &Balancer{slowStart: slowStart} }

// Pick chooses one of the addresses; there must be at least one. It fails if one of them is not a
// loopback address.
func (b *Balancer) Pick(now time.Duration, addresses []string) (string, error) {
	if !slices.Equal(addresses, b.addresses) {
		if err := b.update(now, addresses); err != nil {
			return "", err
		}
	}
	var total float64
	var best *backend
	for _, candidate := range b.backends {
		weight := b.weight(now - candidate.since)
		total += weight
		candidate.credit += weight
		if best == nil || candidate.credit > best.credit {
			best = candidate
		}
	}
	best.credit -= total
	return best.address, nil
}

func (b *Balancer) update(now time.Duration, addresses []string) error {
	known := make(map[string]*backend, len(b.backends))
	for _, old := range b.backends {
		known[old.address] = old
	}
	backends := make([]*backend, 0, len(addresses))
	for _, address := range addresses {
		if err := checkLoopback(address); err != nil {
			return err
		}
		current := known[address]
		if current == nil {
			current = &backend{address: address, since: now}
		}
		backends = append(backends, current)
	}
	b.addresses, b.backends = slices.Clone(addresses), backends
	return nil
}

func (b *Balancer) weight(age time.Duration) float64 {
	if age >= b.slowStart {
		return 1
	}
	return max(slowStartFloor, float64(age)/float64(b.slowStart))
}

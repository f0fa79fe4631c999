package promapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// budget is the memory that answers may take together. Whoever lacks memory waits until others are done. Meanwhile the
// tenant that asks for most gives up its newest answer, as often as somebody else waits: so a tenant gets an equal share
// at least, however much others ask for, however slowly their servers send, and from however many addresses.
type budget struct {
	total int64

	mu      sync.Mutex
	used    int64
	order   uint64 // of the newest lease
	leases  []*lease
	changed chan struct{} // is closed when leases have changed
}

func newBudget(total int64) *budget { return &budget{total: total, changed: make(chan struct{})} }

// lease is what one answer takes of a budget.
type lease struct {
	budget *budget
	tenant string
	order  uint64
	giveUp context.CancelFunc // of the request

	// Guarded by the budget's mu:
	held, wanted int64
	fixed        bool // the answer is complete, and given back as soon as it is decoded
	evicted      bool
	ended        bool // the question is over, though its answer may still be read: see take
}

func (b *budget) lease(tenant string, giveUp context.CancelFunc) *lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.order++
	l := &lease{budget: b, tenant: tenant, order: b.order, giveUp: giveUp}
	b.leases = append(b.leases, l)
	return l
}

// take waits for more memory. It fails when the context ends, when the answer has been given up, and when there is not as
// much memory at all. It fails after end, too: when a question times out, client_golang returns while its goroutine still
// reads the answer, and memory taken then would never be given back.
func (l *lease) take(ctx context.Context, n int64) error {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { l.wanted = 0 }()
	l.wanted = n
	for first := true; ; first = false {
		switch {
		case l.ended:
			return context.Canceled
		case l.evicted:
			return shareError(b.total)
		case l.held+n > b.total:
			return &sizeError{fmt.Sprintf("the answer would take more than the %d MiB of memory for all answers", b.total>>20)}
		case b.used+n <= b.total:
			b.used += n
			l.held += n
			return nil
		}
		if first {
			b.wake() // older ones may now have this one given up
		}
		if victim := b.victim(); victim != nil && victim != l {
			victim.evicted = true
			victim.giveUp()
			continue
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		b.mu.Lock()
		if err := ctx.Err(); err != nil && !l.evicted {
			return err
		}
	}
}

// victim returns the newest incomplete answer of the tenant that asks for most, nil if there is none, or if one that was
// given up has not ended yet. The caller holds the lock.
func (b *budget) victim() *lease {
	demands := map[string]int64{}
	for _, l := range b.leases {
		if l.evicted && l.held > 0 {
			return nil
		}
		demands[l.tenant] += l.held + l.wanted
	}
	var victim *lease
	for _, l := range b.leases {
		if l.fixed || l.evicted {
			continue
		}
		if victim == nil || cmp.Or(cmp.Compare(demands[l.tenant], demands[victim.tenant]), cmp.Compare(l.order, victim.order)) > 0 {
			victim = l
		}
	}
	return victim
}

// fix keeps the answer from being given up. It returns whether it was not before.
func (l *lease) fix() bool {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	l.fixed = !l.evicted
	return l.fixed
}

// end gives everything back.
func (l *lease) end() {
	l.giveUp()
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= l.held
	l.held, l.ended = 0, true
	b.leases = slices.DeleteFunc(b.leases, func(o *lease) bool { return o == l })
	b.wake()
}

func (b *budget) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

func shareError(total int64) error {
	return &sizeError{fmt.Sprintf("the answers for the namespace take more than its share of the %d MiB of memory for answers", total>>20)}
}

// Package share divides what is scarce between tenants, which are namespaces or senders: slots and bytes (Pool), a rate
// (Rate), the order of work (Turns) and a sum (Level).
//
// Each tenant gets at least an equal part while others contend. Parts that a tenant does not use are lent to others, and
// called back when the tenant asks for them. It knows nothing of what is divided.
package share

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// Errors of Take.
var (
	// ErrRecalled reports that the lease was called back because a tenant with less waits.
	ErrRecalled = errors.New("called back for a tenant that has less")
	// ErrTooMuch reports that the pool is smaller than what the lease would hold.
	ErrTooMuch = errors.New("more than the pool has")
	// ErrQueueFull reports that as many leases of the tenant wait as may.
	ErrQueueFull = errors.New("too many of the tenant wait")
)

// Pool is an amount of slots or bytes. It is safe for concurrent use.
//
// What is free goes to the waiting tenant that has least with it. If nothing is free, the tenant that holds most loses its
// newest lease, as long as that leaves it no less than the waiting tenant then has. So k tenants that contend hold at
// least 1/k of the pool each (rounded down) as soon as called-back leases end. With more tenants than slots they take
// turns: a tenant waits until as many leases of others have ended as there are tenants.
//
// Leases may grow. If growing leases wait for each other, the tenant that needs most loses its newest one.
type Pool struct {
	total int64
	queue int

	mu       sync.Mutex
	used     int64
	order    uint64 // of the newest lease or grant
	tenants  map[string]*tenant
	recalled int // leases that were called back and still hold something
}

// tenant is what one of them holds and waits for. It is kept while that is anything.
type tenant struct {
	held    int64
	served  uint64   // order of its last grant
	holding []*Lease // oldest first
	growing []*Lease // those of holding that wait for more, oldest first
	waiting []*Lease // those that wait and hold nothing, in the order in which they asked
}

// Lease is a part of a Pool. Its methods may be called concurrently, but one Take at a time.
type Lease struct {
	pool   *Pool
	tenant string
	order  uint64
	recall func()

	// Guarded by the pool's mu:
	held, wanted           int64
	ready                  chan struct{} // closed when the wait is over
	fixed, recalled, ended bool
}

// NewPool returns a Pool of a total, of which queue leases of each tenant may wait that hold nothing yet; 0: any number.
func NewPool(total int64, queue int) *Pool {
	return &Pool{total: total, queue: queue, tenants: map[string]*tenant{}}
}

// Total returns the size of the pool.
func (p *Pool) Total() int64 { return p.total }

// InUse returns how much leases hold.
func (p *Pool) InUse() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Lease returns a lease that holds nothing yet. Recall is called once when the lease must end; it must not block or call
// the pool. A lease with a nil recall is never called back. The caller ends every lease.
func (p *Pool) Lease(tenant string, recall func()) *Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order++
	return &Lease{pool: p, tenant: tenant, order: p.order, recall: recall, fixed: recall == nil}
}

// Take waits until the lease holds n more. It fails when the context ends, with ErrRecalled, ErrTooMuch or ErrQueueFull,
// and with context.Canceled after End.
func (l *Lease) Take(ctx context.Context, n int64) error {
	p := l.pool
	p.mu.Lock()
	if err := l.refusal(n); err != nil || n == 0 {
		p.mu.Unlock()
		return err
	}
	l.wanted, l.ready = n, make(chan struct{})
	ready := l.ready
	p.enqueue(l)
	p.settle()
	p.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.wanted == 0 {
		return nil
	}
	p.dequeue(l)
	p.settle()
	if err := l.refusal(0); err != nil {
		return err
	}
	return ctx.Err()
}

// refusal returns why the lease cannot wait for n more.
func (l *Lease) refusal(n int64) error {
	p := l.pool
	switch {
	case l.ended:
		return context.Canceled
	case l.recalled:
		return ErrRecalled
	case l.held+n > p.total:
		return ErrTooMuch
	case n > 0 && l.held == 0 && p.queue > 0 && len(p.of(l).waiting) >= p.queue:
		p.drop(l)
		return ErrQueueFull
	}
	return nil
}

// Fix keeps the lease from being called back, and reports whether that has not happened before.
func (l *Lease) Fix() bool {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.fixed = !l.recalled
	return l.fixed
}

// Recalled reports whether the lease was called back.
func (l *Lease) Recalled() bool {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.recalled
}

// End returns everything to the pool. A second call does nothing.
func (l *Lease) End() {
	p := l.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	if l.wanted > 0 {
		p.dequeue(l)
		close(l.ready)
	}
	if l.held > 0 {
		t := p.of(l)
		t.held -= l.held
		p.used -= l.held
		l.held = 0
		t.holding = without(t.holding, l)
		if l.recalled {
			p.recalled--
		}
		p.drop(l)
	}
	p.settle()
}

// of returns the tenant of a lease.
func (p *Pool) of(l *Lease) *tenant {
	t := p.tenants[l.tenant]
	if t == nil {
		t = &tenant{served: p.order} // as if it had just been served: those that wait already come first
		p.tenants[l.tenant] = t
	}
	return t
}

// drop forgets the tenant of a lease if it neither holds nor waits.
func (p *Pool) drop(l *Lease) {
	if t := p.tenants[l.tenant]; t != nil && t.held == 0 && len(t.waiting) == 0 {
		delete(p.tenants, l.tenant)
	}
}

func (p *Pool) enqueue(l *Lease) {
	t := p.of(l)
	if l.held == 0 {
		t.waiting = append(t.waiting, l)
		return
	}
	i, _ := slices.BinarySearchFunc(t.growing, l, byOrder)
	t.growing = slices.Insert(t.growing, i, l)
}

func (p *Pool) dequeue(l *Lease) {
	t := p.of(l)
	l.wanted = 0
	if l.held > 0 {
		t.growing = without(t.growing, l)
		return
	}
	t.waiting = without(t.waiting, l)
	p.drop(l)
}

// settle gives what is free to those that wait, and calls back what a tenant with less is entitled to.
func (p *Pool) settle() {
	for {
		waiting := p.heads()
		granted := false
		for _, l := range waiting {
			if p.used+l.wanted <= p.total {
				p.grant(l)
				granted = true
				break
			}
			if p.recalled > 0 || p.callBack(l) {
				return // what comes back is for this one: later ones must not take it first
			}
		}
		if !granted {
			return
		}
	}
}

// heads returns the lease of each tenant that is served next, that of the tenant which then has least first.
func (p *Pool) heads() []*Lease {
	var out []*Lease
	for _, t := range p.tenants {
		switch {
		case len(t.growing) > 0:
			out = append(out, t.growing[0])
		case len(t.waiting) > 0:
			out = append(out, t.waiting[0])
		}
	}
	slices.SortFunc(out, func(a, b *Lease) int {
		s, t := p.tenants[a.tenant], p.tenants[b.tenant]
		return cmp.Or(cmp.Compare(s.held+a.wanted, t.held+b.wanted), cmp.Compare(s.served, t.served), byOrder(a, b))
	})
	return out
}

func (p *Pool) grant(l *Lease) {
	t, n := p.of(l), l.wanted
	p.dequeue(l)
	if l.held == 0 {
		t = p.of(l) // dequeue may have dropped it
		i, _ := slices.BinarySearchFunc(t.holding, l, byOrder)
		t.holding = slices.Insert(t.holding, i, l)
	}
	p.order++
	t.served = p.order
	l.held += n
	t.held += n
	p.used += n
	close(l.ready)
}

// callBack calls back the newest lease of the tenant that needs most, if that is more than the tenant of l has with what
// it waits for. A lease that grows may also take from a tenant that needs as much, and from newer ones of its own.
func (p *Pool) callBack(l *Lease) bool {
	own := p.of(l)
	mine := own.need()
	if l.held == 0 {
		mine += l.wanted
	}
	var victim *Lease
	most := mine
	for _, t := range p.tenants {
		x, need := t.newest(), t.need()
		if x == nil || t == own && l.held == 0 {
			continue
		}
		equal := need == most && l.held > 0 && (victim == nil && x.order > l.order || victim != nil && x.order > victim.order)
		if need > most || equal {
			victim, most = x, need
		}
	}
	if victim == nil || victim == l {
		return false
	}
	victim.recalled = true
	p.recalled++
	if victim.wanted > 0 {
		close(victim.ready)
		victim.ready = make(chan struct{}) // End closes it again
		own := p.of(victim)
		own.growing = without(own.growing, victim)
	}
	victim.recall()
	return true
}

// need returns what the tenant holds and what its leases wait for to go on.
func (t *tenant) need() int64 {
	n := t.held
	for _, l := range t.growing {
		n += l.wanted
	}
	return n
}

// newest returns the newest lease that can be called back, nil if there is none.
func (t *tenant) newest() *Lease {
	for _, l := range slices.Backward(t.holding) {
		if !l.fixed && !l.recalled {
			return l
		}
	}
	return nil
}

func byOrder(a, b *Lease) int { return cmp.Compare(a.order, b.order) }

func without(list []*Lease, l *Lease) []*Lease {
	if i := slices.Index(list, l); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

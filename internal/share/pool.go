// Package share divides what is scarce between tenants, which are namespaces or senders: slots and
// bytes (Pool), a rate (Rate), the order of work (Turns) and a sum (Level).
//
// Each tenant gets at least an equal part while others contend. Parts that a tenant does not use
// are lent to others, and called back when the tenant asks for them. It knows nothing of what is
// divided.
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
// What is free goes to the waiting tenant that has least with it. If nothing is free, the tenant
// that holds most loses its newest lease, as long as that leaves it no less than the waiting tenant
// then has. So k tenants that contend hold at least 1/k of the pool each (rounded down) as soon as
// called-back leases end. With more tenants than slots they take turns: a tenant waits until as
// many leases of others have ended as there are tenants.
//
// Leases may grow. If growing leases wait for each other, the tenant that needs most loses its newest one.
type Pool struct {
	total int64
	queue int

	mu       sync.Mutex
	used     int64
	order    uint64 // of the newest lease or grant
	tenants  map[string]*tenant
	waiting  int // leases that wait, for their first part or for more
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
	of                     *tenant // while it holds or waits
	held, wanted           int64
	ready                  chan struct{} // closed when the wait is over
	fixed, recalled, ended bool
}

// NewPool returns a Pool of a total, of which queue leases of each tenant may wait that hold
// nothing yet; 0: any number.
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

// Lease returns a lease that holds nothing yet. Recall is called once when the lease must end; it
// must not block or call the pool. A lease with a nil recall is never called back. The caller ends
// every lease.
func (p *Pool) Lease(tenant string, recall func()) *Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order++
	return &Lease{pool: p, tenant: tenant, order: p.order, recall: recall, fixed: recall == nil}
}

// Take waits until the lease holds n more. It fails when the context ends, with ErrRecalled,
// ErrTooMuch or ErrQueueFull, and with context.Canceled after End.
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
	switch {
	case l.wanted > 0:
		p.dequeue(l)
		p.settle()
	case !l.ended:
		return nil
	}
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
		t := l.of
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
	l.of = t
	p.waiting++
	if l.held == 0 {
		t.waiting = append(t.waiting, l)
		return
	}
	i, _ := slices.BinarySearchFunc(t.growing, l, byOrder)
	t.growing = slices.Insert(t.growing, i, l)
}

// dequeue ends the wait of a lease.
func (p *Pool) dequeue(l *Lease) {
	l.wanted = 0
	if !l.recalled {
		p.waiting--
	}
	if l.held > 0 {
		l.of.growing = without(l.of.growing, l)
		return
	}
	l.of.waiting = without(l.of.waiting, l)
	p.drop(l)
}

// settle gives what is free to those that wait, and calls back what a tenant with less is entitled
// to. What comes back is for the lease that is next: others must not take it first.
func (p *Pool) settle() {
	for p.waiting > 0 {
		victim := p.victim()
		next := p.next(func(l *Lease) bool { return p.recalled > 0 || p.fits(l) || p.yields(victim, l) })
		switch {
		case next == nil || p.recalled > 0 && !p.fits(next):
			return
		case !p.fits(next):
			p.callBack(victim)
			return
		}
		p.grant(next)
	}
}

func (p *Pool) fits(l *Lease) bool { return p.used+l.wanted <= p.total }

// next returns the waiting lease that comes first of those that may: that of the tenant which then
// has least. It is nil if there is none.
func (p *Pool) next(may func(*Lease) bool) (first *Lease) {
	var of *tenant
	for _, t := range p.tenants {
		l := t.head()
		if l == nil || first != nil && t.compare(l, of, first) > 0 || !may(l) {
			continue
		}
		first, of = l, t
	}
	return first
}

// head returns the lease of the tenant that is served next, nil if none waits.
func (t *tenant) head() *Lease {
	for _, queue := range [][]*Lease{t.growing, t.waiting} {
		if len(queue) > 0 {
			return queue[0]
		}
	}
	return nil
}

// compare orders tenants by what each has with the lease that it is served next, then by their last grants.
func (t *tenant) compare(a *Lease, u *tenant, b *Lease) int {
	return cmp.Or(cmp.Compare(t.held+a.wanted, u.held+b.wanted), cmp.Compare(t.served, u.served), byOrder(a, b))
}

func (p *Pool) grant(l *Lease) {
	t, n := l.of, l.wanted
	if l.held == 0 {
		t.waiting = without(t.waiting, l)
		i, _ := slices.BinarySearchFunc(t.holding, l, byOrder)
		t.holding = slices.Insert(t.holding, i, l)
	} else {
		t.growing = without(t.growing, l)
	}
	p.waiting--
	p.order++
	t.served = p.order
	l.wanted = 0
	l.held += n
	t.held += n
	p.used += n
	close(l.ready)
}

// victim returns the lease that is called back first: the newest of the tenant that needs most. It
// is nil if there is none.
func (p *Pool) victim() (victim *Lease) {
	var most int64
	for _, t := range p.tenants {
		need := t.need()
		if victim != nil && need < most {
			continue
		}
		if x := t.newest(); x != nil && (victim == nil || need > most || byOrder(x, victim) > 0) {
			victim, most = x, need
		}
	}
	return victim
}

// yields reports whether a lease, which may be nil, is called back for another one: its tenant
// needs more than that of the other has with what it waits for. A lease that grows may also take
// from a tenant that needs as much, and from newer ones of its own.
func (p *Pool) yields(victim, l *Lease) bool {
	if victim == nil {
		return false
	}
	need, mine := victim.of.need(), l.of.need()
	if l.held == 0 {
		return need > mine+l.wanted
	}
	return need > mine || need == mine && byOrder(victim, l) > 0
}

func (p *Pool) callBack(victim *Lease) {
	victim.recalled = true
	p.recalled++
	if victim.wanted > 0 {
		close(victim.ready)
		victim.ready = make(chan struct{}) // End closes it again
		p.waiting--
		victim.of.growing = without(victim.of.growing, victim)
	}
	victim.recall()
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

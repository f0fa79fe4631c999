package nodepool

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// turns lets the calls of several processes through one at a time, in an order that a seed decides,
// and lets time pass between them. A process whose context would have ended by that time is told
// so, as its clock is not the one of contexts.
type turns struct {
	clock *clock
	pass  func() time.Duration // how much time passes before the next call; may be zero

	mu        sync.Mutex
	random    *rand.Rand
	active    int                     // ticks that are not waiting for a turn
	next      int                     // numbers those who wait
	waiting   map[int]chan struct{}   // for their turn
	deadlines map[time.Time]time.Time // of contexts → by the clock of the test
}

func newTurns(c *clock, random *rand.Rand, pass func() time.Duration) *turns {
	return &turns{clock: c, random: random, pass: pass, waiting: map[int]chan struct{}{},
		deadlines: map[time.Time]time.Time{}}
}

// begin says that a tick begins, before it does.
func (t *turns) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active++
}

// end says that a tick has ended.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active--
	t.grant()
}

// wait returns when it is the caller's turn.
func (t *turns) wait(ctx context.Context) error {
	t.mu.Lock()
	deadline, limited := t.deadline(ctx)
	id, turn := t.next, make(chan struct{})
	t.next++
	t.waiting[id] = turn
	t.active--
	t.grant()
	t.mu.Unlock()
	<-turn
	if limited && t.clock.Now().After(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// deadline returns when a context ends by the clock of the test.
func (t *turns) deadline(ctx context.Context) (time.Time, bool) {
	ends, limited := ctx.Deadline()
	if !limited {
		return time.Time{}, false
	}
	if _, known := t.deadlines[ends]; !known {
		t.deadlines[ends] = t.clock.Now().Add(time.Until(ends))
	}
	return t.deadlines[ends], true
}

// grant gives the turn to one of those who wait, once all do.
func (t *turns) grant() {
	if t.active > 0 || len(t.waiting) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(t.waiting))
	id := ids[t.random.IntN(len(ids))]
	t.clock.advance(t.pass())
	t.active++
	close(t.waiting[id])
	delete(t.waiting, id)
}

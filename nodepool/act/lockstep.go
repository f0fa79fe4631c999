package act

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/foresail/foresail/nodepool/journal"
)

// maxCalls is the number of calls of tasks that run at the same time. Clients of the cloud and of
// the cluster also limit their rates.
const maxCalls = 20

// lockstep runs tasks that share the journal. One task runs at a time, until it makes a call or
// saves the journal. When every task has reached such a point, the journal is written once for all
// that save it, and then all calls are made concurrently. Tasks therefore read as if each ran
// alone, only one goroutine changes the journal, and the number of rounds and writes depends on the
// tasks and not on timing.
type lockstep struct {
	running *task                           // nil: no task runs, and calls are made at once
	save    func(ctx context.Context) error // writes the journal
}

// task is one procedure of a lockstep.
type task struct {
	next  func() (struct{}, bool) // continues until the next call or save, or the end
	yield func(struct{}) bool
	call  func()          // the pending call; nil: a save
	saves context.Context // context of the pending save
	err   error           // why the call was not made, or the error of the save
	ended error           // the returned error
}

// together runs one task for each of n things, and returns their errors.
func (l *lockstep) together(n int, do func(i int) error) []error {
	errs := make([]error, n)
	if l.running != nil || n == 1 { // one task needs no rounds
		for i := range n {
			errs[i] = do(i)
		}
		return errs
	}
	tasks := make([]*task, n)
	for i := range tasks {
		t := &task{}
		next, stop := iter.Pull(func(yield func(struct{}) bool) {
			t.yield = yield
			t.ended = do(i)
		})
		defer stop()
		t.next, tasks[i] = next, t
	}
	for open := tasks; len(open) > 0; {
		open = l.proceed(open)
		l.round(open)
	}
	for i, t := range tasks {
		errs[i] = t.ended
	}
	return errs
}

// proceed continues each task to its next call or save, and returns those that have not ended.
func (l *lockstep) proceed(tasks []*task) (open []*task) {
	for _, t := range tasks {
		l.running = t
		if _, more := t.next(); more {
			open = append(open, t)
		}
		l.running = nil
	}
	return open
}

// round serves the pending requests of tasks: one save, and then the calls, unless the save failed.
func (l *lockstep) round(tasks []*task) {
	var failed error
	if at := slices.IndexFunc(tasks, func(t *task) bool { return t.call == nil }); at >= 0 {
		failed = l.save(tasks[at].saves)
	}
	var calls sync.WaitGroup
	var returned atomic.Int64
	made := int64(0)
	slots := make(chan struct{}, maxCalls)
	for _, t := range tasks {
		if t.err = failed; t.call == nil || failed != nil {
			continue
		}
		made++
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			t.call()
			returned.Add(1)
		})
	}
	calls.Wait()
	if returned.Load() < made {
		runtime.Goexit() // a call ended its goroutine, as a failed test does: so does this one
	}
}

// wait ends the turn of the running task.
func (t *task) wait(call func(), saves context.Context) error {
	t.call, t.saves, t.err = call, saves, nil
	if !t.yield(struct{}{}) {
		return journal.ErrStop
	}
	return t.err
}

// do makes a call, concurrently with those of other tasks. An error means that it was not made.
func (l *lockstep) do(call func()) error {
	if l == nil || l.running == nil {
		call()
		return nil
	}
	return l.running.wait(call, nil)
}

// write saves the journal, once for all tasks that save it.
func (l *lockstep) write(ctx context.Context) error {
	if l.running == nil {
		return l.save(ctx)
	}
	return l.running.wait(nil, ctx)
}

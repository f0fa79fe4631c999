// Package play runs many runs at once. Each command of the lab has a package of its own below it.
package play

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// finished is a run that ended.
type finished[T any] struct {
	index  int
	result T
	err    error
}

// Each calls run with the numbers from 0 to n-1, as many at a time as there are processors, and
// done with each result: one at a time, in any order. When the context ends or a run fails, no more
// runs begin, those under way are abandoned, and the error is returned.
func Each[T any](ctx context.Context, n int, run func(i int) (T, error), done func(i int, result T)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan finished[T], n)
	go func() {
		var group errgroup.Group
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i := 0; i < n && ctx.Err() == nil; i++ {
			group.Go(func() error {
				result, err := run(i)
				ends <- finished[T]{i, result, err}
				return nil
			})
		}
	}()
	for range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case end := <-ends:
			if end.err != nil {
				return end.err
			}
			done(end.index, end.result)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

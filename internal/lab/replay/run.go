package replay

import (
	"context"
	"errors"
	"io"
)

// Run reads a recording from in, evaluates its runs, writes the results to out and returns how many
// there were. Where a line of the input cannot be used, the runs that the lines before it ask for
// are evaluated and written, by what those lines say, and the *LineError is returned.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options, f Format) (runs int, err error) {
	if err := o.Params.Validate(); err != nil {
		return 0, err
	}
	w, err := NewWriter(out, f)
	if err != nil {
		return 0, err
	}
	rec, unreadable := readUntil(ctx, in)
	if rec == nil {
		return 0, unreadable
	}
	results, err := rec.Replay(o)
	if err != nil {
		return 0, err
	}
	for result := range results {
		if ctx.Err() != nil {
			return runs, errors.Join(context.Cause(ctx), w.Flush())
		}
		if err := w.Write(result); err != nil {
			return runs, err
		}
		runs++
	}
	return runs, errors.Join(unreadable, w.Flush())
}

// readUntil reads a recording, or gives up, without one, when the context is done: a read from a
// terminal or a pipe cannot be interrupted otherwise.
func readUntil(ctx context.Context, in io.Reader) (*Recording, error) {
	type outcome struct {
		rec *Recording
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		rec, err := Read(in)
		done <- outcome{rec, err}
	}()
	select {
	case o := <-done:
		return o.rec, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

package signal

import (
	"context"
	"time"

	"github.com/foresail/foresail/internal/nodequery"
)

// awaitTimeout bounds how long a tick waits for answers. The answer of a slower query is used in a later tick.
const awaitTimeout = time.Second

// maxTimeout bounds how long a query may take, for any interval.
const maxTimeout = 5 * time.Second

// poller sends a query at most once in each sample interval, for the time since the last answer. It is not safe for
// concurrent use; queries run in the background.
type poller struct {
	nodequery.Question
	window   int64         // ms
	queried  int64         // end of the newest query
	answered int64         // end of the newest answer; 0 = none
	pending  *pendingQuery // nil = none
}

// pendingQuery is a query in progress. Its results may be read once done is closed.
type pendingQuery struct {
	from, to int64
	first    bool // it covers the whole window
	done     chan struct{}
	lines    []nodequery.Line
	err      error
}

func newPoller(q nodequery.Question, f *Forecast) poller {
	return poller{Question: q, window: (f.Window + f.Interval).Milliseconds()}
}

// overlap is how many samples are queried again, as a server may ingest them late.
const overlap = 2

// begin starts a query if an interval has passed and none is in progress. The query ends with ctx at the latest.
func (p *poller) begin(ctx context.Context, now int64) {
	step := p.Step.Milliseconds()
	to := nodequery.Floor(now, step)
	if p.pending != nil || to == p.queried {
		return
	}
	p.queried = to
	f := &pendingQuery{from: nodequery.Floor(to-p.window, step), to: to, first: true, done: make(chan struct{})}
	if again := p.answered - overlap*step; p.answered != 0 && again > f.from {
		f.from, f.first = again, false
	}
	p.pending = f
	go func() {
		defer close(f.done)
		f.lines, f.err = p.Ask(ctx, f.from, f.to)
	}()
}

// await waits for the query in progress until ctx ends.
func (p *poller) await(ctx context.Context) {
	if p.pending == nil {
		return
	}
	select {
	case <-p.pending.done:
	case <-ctx.Done():
	}
}

// finished returns the query that has ended, once; nil if none has.
func (p *poller) finished() *pendingQuery {
	if p.pending == nil {
		return nil
	}
	select {
	case <-p.pending.done:
	default:
		return nil
	}
	f := p.pending
	p.pending = nil
	return f
}

// reset has the whole window queried again.
func (p *poller) reset() { p.queried, p.answered, p.pending = 0, 0, nil }

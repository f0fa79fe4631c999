package signal

import (
	"context"
	"time"

	"github.com/foresail/foresail/internal/nodequery"
)

// patience is how long a tick waits for answers. A query that takes longer is heard at a later tick.
const patience = time.Second

// maxTimeout is how long a query may take at most, however long the interval is.
const maxTimeout = 5 * time.Second

// poller asks a question at most once for each sample interval, for what is new since the last answer. It is not safe for
// concurrent use; queries run beside.
type poller struct {
	nodequery.Question
	window int64   // ms
	asked  int64   // the newest time that was asked for
	whole  int64   // up to when there are answers; 0 = there are none
	flight *flight // the query under way, nil = none
}

// flight is a query under way. What it brings may be read when done is closed.
type flight struct {
	from, to int64
	first    bool // it asks for all of the window
	done     chan struct{}
	lines    []nodequery.Line
	err      error
}

func newPoller(q nodequery.Question, f *Forecast) poller {
	return poller{Question: q, window: (f.Window + f.Interval).Milliseconds()}
}

// overlap is how many samples are asked for again, as a server may have learned of them late.
const overlap = 2

// begin asks for what is new, if an interval has passed and no query is under way. The query goes on until ctx ends.
func (p *poller) begin(ctx context.Context, now int64) {
	step := p.Step.Milliseconds()
	to := nodequery.Floor(now, step)
	if p.flight != nil || to == p.asked {
		return
	}
	p.asked = to
	f := &flight{from: nodequery.Floor(to-p.window, step), to: to, first: true, done: make(chan struct{})}
	if again := p.whole - overlap*step; p.whole != 0 && again > f.from {
		f.from, f.first = again, false
	}
	p.flight = f
	go func() {
		defer close(f.done)
		f.lines, f.err = p.Ask(ctx, f.from, f.to)
	}()
}

// await waits for the query under way until ctx ends.
func (p *poller) await(ctx context.Context) {
	if p.flight == nil {
		return
	}
	select {
	case <-p.flight.done:
	case <-ctx.Done():
	}
}

// landed returns the query that has ended since it was asked last, or nil.
func (p *poller) landed() *flight {
	if p.flight == nil {
		return nil
	}
	select {
	case <-p.flight.done:
	default:
		return nil
	}
	f := p.flight
	p.flight = nil
	return f
}

// forget has all of the window asked for again.
func (p *poller) forget() { p.asked, p.whole, p.flight = 0, 0, nil }

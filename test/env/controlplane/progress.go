package controlplane

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// reportInterval is how often a long step writes that it goes on.
const reportInterval = 10 * time.Second

// reporter writes that a long step began, that it goes on, and that it is over.
type reporter struct {
	out   io.Writer
	title string

	mu     sync.Mutex
	detail string
	began  time.Time
	quit   chan struct{}
	ended  chan struct{}
}

func newReporter(out io.Writer, title string) *reporter {
	return &reporter{out: out, title: title}
}

// Announce writes that a step has begun and, every ten seconds, that it goes on, until end is called.
func Announce(out io.Writer, title string) (end func()) {
	r := newReporter(out, title)
	r.start()
	return r.stop
}

// start writes the first line; a second start does nothing.
func (r *reporter) start() {
	if r.quit != nil {
		return
	}
	r.began = time.Now()
	r.quit, r.ended = make(chan struct{}), make(chan struct{})
	fmt.Fprintf(r.out, "%s\n", r.title)
	go r.run()
}

// stop writes the last line, unless the step never started.
func (r *reporter) stop() {
	if r.quit == nil {
		return
	}
	close(r.quit)
	<-r.ended
	r.line("ended after")
}

// note sets what the step is doing now.
func (r *reporter) note(detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detail = detail
}

func (r *reporter) run() {
	defer close(r.ended)
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-tick.C:
			r.line("…")
		}
	}
}

func (r *reporter) line(verb string) {
	r.mu.Lock()
	detail := r.detail
	r.mu.Unlock()
	if detail != "" {
		detail = ", " + detail
	}
	fmt.Fprintf(r.out, "%s %s %s%s\n", r.title, verb, time.Since(r.began).Round(time.Second), detail)
}

// compilerOutput turns what "go build -v" writes into progress and keeps the end of it for an error message.
type compilerOutput struct {
	report    *reporter
	partial   []byte
	lines     []string
	downloads int
	packages  int
}

// keptLines is how much of a failed command's output an error carries.
const keptLines = 20

// Write takes the output as it comes, in pieces that need not end with a line.
func (o *compilerOutput) Write(p []byte) (int, error) {
	o.partial = append(o.partial, p...)
	for {
		line, rest, found := bytes.Cut(o.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		o.line(string(line))
		o.partial = append(o.partial[:0], rest...)
	}
}

func (o *compilerOutput) line(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		o.downloads++
	case !strings.ContainsAny(line, " \t:"):
		o.packages++
	default:
		o.lines = append(o.lines, line)
		o.lines = o.lines[max(0, len(o.lines)-keptLines):]
	}
	switch {
	case o.packages > 0:
		o.report.note(fmt.Sprintf("%d packages compiled", o.packages))
	case o.downloads > 0:
		o.report.note(fmt.Sprintf("%d modules downloaded", o.downloads))
	}
}

func (o *compilerOutput) tail() string {
	return strings.Join(append(o.lines, string(o.partial)), "\n")
}

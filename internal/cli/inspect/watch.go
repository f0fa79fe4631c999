package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/foresail/foresail/internal/cli"
)

const (
	// watchPeriod is how often an object is read to see whether it has changed: as often as
	// Foresail looks whether its status has to be written.
	watchPeriod = 2 * time.Second
	// watchTimeout is how long a read may take before the API server counts as away.
	watchTimeout = 10 * time.Second
)

// explanation is what is explained of an object at one time.
type explanation struct {
	value any                   // as JSON
	state any                   // what makes it another one, as JSON: value, without the time at which it was read
	table func(io.Writer) error // as text
}

// explainFunc reads what there is to explain of the object that a command names. Its error is for the user.
type explainFunc func(context.Context) (explanation, error)

const watchHelp = `With --watch it goes on until Ctrl-C, and then exits with 0. A terminal is redrawn as it changes;
elsewhere each new state follows the one before after an empty line, and with --output json it is
one line. An API server that is away for a while, and an object that is deleted and created again,
are reported and waited for. It reads every 2s, with the rights of kubectl get.`

// addWatchFlag adds --watch.
func addWatchFlag(c *cobra.Command) *bool {
	return c.Flags().BoolP("watch", "w", false, "show it anew whenever it changes, until Ctrl-C")
}

// printExplanation writes an explanation once, or with watch until the context ends.
func printExplanation(c *cobra.Command, watch bool, format string, read explainFunc) error {
	if watch {
		w := newWatcher(c, format)
		defer w.close()
		return w.run(c.Context(), read)
	}
	e, err := read(c.Context())
	if err != nil {
		return err
	}
	if format == "json" {
		return cli.PrintJSON(c.OutOrStdout(), e.value)
	}
	return e.table(c.OutOrStdout())
}

// watcher shows each state of an object: on a terminal in place of the one before, elsewhere below
// it, as JSON one a line.
type watcher struct {
	out, notes io.Writer
	json       bool
	screen     *screen // nil: there is none
	now        func() time.Time

	shown []byte      // the state that was shown last, as JSON
	last  explanation // of that state
	away  string      // why it could not be read last, "" if it could
	since time.Time   // since when
}

func newWatcher(c *cobra.Command, format string) *watcher {
	w := &watcher{out: c.OutOrStdout(), notes: c.ErrOrStderr(), json: format == "json", now: time.Now}
	if f, ok := w.out.(*os.File); ok && !w.json && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		w.screen = &screen{out: f, size: func() (int, int, error) { return term.GetSize(int(f.Fd())) }}
	}
	return w
}

// run reads and shows until the context ends, which is no error. The first read has to succeed, so
// that a name or a cluster that does not exist is one. Later ones may fail: an API server may be
// away for a while, and an object be deleted and created again.
func (w *watcher) run(ctx context.Context, read explainFunc) error {
	ticks := time.NewTicker(watchPeriod)
	defer ticks.Stop()
	for first := true; ; first = false {
		e, err := w.read(ctx, read)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // whoever ends it has seen what there was
		case err != nil && first:
			return err
		case err != nil:
			err = w.lose(err)
		default:
			err = w.show(e)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

func (w *watcher) read(ctx context.Context, read explainFunc) (explanation, error) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	return read(ctx)
}

// show shows a state that differs from the one before. A screen is drawn again each time, because
// ages are on it.
func (w *watcher) show(e explanation) error {
	state, err := json.Marshal(e.state)
	if err != nil {
		return err
	}
	if w.away != "" {
		w.away = ""
		if w.screen == nil {
			if _, err := fmt.Fprintf(w.notes, "%s it can be read again\n", w.now().Format(time.TimeOnly)); err != nil {
				return err
			}
		}
	}
	changed := !bytes.Equal(state, w.shown)
	first := w.shown == nil
	w.shown, w.last = state, e
	switch {
	case w.screen != nil:
		return w.draw()
	case !changed:
		return nil
	case w.json:
		return json.NewEncoder(w.out).Encode(e.value)
	case !first:
		if _, err := fmt.Fprintln(w.out); err != nil {
			return err
		}
	}
	return e.table(w.out)
}

// lose reports why a state could not be read, once for each cause. The state before stays.
func (w *watcher) lose(why error) error {
	text := why.Error()
	if errors.Is(why, context.DeadlineExceeded) || apierrors.IsTimeout(why) {
		text = fmt.Sprintf("no answer within %s", watchTimeout)
	}
	known := w.away == text
	if w.away == "" {
		w.since = w.now()
	}
	w.away = text
	switch {
	case w.screen != nil:
		return w.draw()
	case known:
		return nil
	}
	_, err := fmt.Fprintf(w.notes, "%s it cannot be read: %s; trying again each %s\n", w.now().Format(time.TimeOnly),
		text, watchPeriod)
	return err
}

// draw puts the last state on the screen, below a head that says whether it is that of now.
func (w *watcher) draw() error {
	head := fmt.Sprintf("%s, read each %s; Ctrl-C ends", w.now().Format(time.TimeOnly), watchPeriod)
	if w.away != "" {
		head = fmt.Sprintf("%s, not read since %s: %s; trying again each %s", w.now().Format(time.TimeOnly),
			w.since.Format(time.TimeOnly), w.away, watchPeriod)
	}
	var b strings.Builder
	if err := w.last.table(&b); err != nil {
		return err
	}
	return w.screen.draw(head, b.String())
}

// close gives the terminal back as it was, with the last state on it.
func (w *watcher) close() {
	if w.screen != nil && w.screen.leave() {
		_ = w.last.table(w.out) // it has been shown
	}
}

// screen is a terminal that is drawn over, beside what was on it.
type screen struct {
	out     io.Writer
	size    func() (columns, rows int, err error)
	entered bool
}

// Escape codes that every terminal knows.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	cursorHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// draw shows a head, and below it as much of a text as there is room for.
func (s *screen) draw(head, text string) error {
	columns, rows, err := s.size()
	if err != nil || columns < 2 || rows < 2 {
		columns, rows = 80, 24
	}
	lines := append(wrapped(head, columns-1), "")
	lines = append(lines, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
	if hidden := len(lines) - rows + 1; hidden > 1 {
		lines = append(lines[:rows-1], fmt.Sprintf("… %d more lines: make the window higher, or leave --watch out",
			hidden))
	}
	var b strings.Builder
	if !s.entered {
		b.WriteString(enterScreen)
		s.entered = true
	}
	b.WriteString(cursorHome)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(fitted(line, columns) + clearLine)
	}
	b.WriteString(clearBelow)
	_, err = io.WriteString(s.out, b.String()) // one write, so that nothing half-drawn is seen
	return err
}

// leave returns whether the screen was drawn on.
func (s *screen) leave() bool {
	if s.entered {
		_, _ = io.WriteString(s.out, leaveScreen) // the terminal may have gone
	}
	return s.entered
}

// wrapped splits a line into some of a width.
func wrapped(line string, width int) (lines []string) {
	for part := range slices.Chunk([]rune(line), width) {
		lines = append(lines, string(part))
	}
	return lines
}

// fitted cuts a line that a terminal would wrap, or move by what others have put into a message.
func fitted(line string, columns int) string {
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, line)
	if utf8.RuneCountInString(line) < columns {
		return line
	}
	return string([]rune(line)[:columns-2]) + "…"
}

// Package terminal is what the demos share: views that are redrawn on a terminal, styled text, and
// a command that ends everything it started, with the right exit code.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Display shows scenes of one kind: redrawn on a terminal, as lines anywhere else.
type Display[S any] struct {
	out     io.Writer
	lines   func(S) // nil on a terminal
	view    func(s S, columns, rows int) []Line
	size    func() (columns, rows int, err error)
	colours bool
}

// NewDisplay returns a display that shows view on a terminal, and calls lines where out is none, or
// if plain is asked for.
func NewDisplay[S any](out *os.File, plain bool, view func(s S, columns, rows int) []Line, lines func(S)) *Display[S] {
	if plain || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return &Display[S]{lines: lines}
	}
	size := func() (int, int, error) { return term.GetSize(int(out.Fd())) }
	return newScreen(out, os.Getenv("NO_COLOR") == "", size, view)
}

func newScreen[S any](out io.Writer, colours bool, size func() (int, int, error),
	view func(S, int, int) []Line) *Display[S] {
	fmt.Fprint(out, enterScreen)
	return &Display[S]{out: out, view: view, size: size, colours: colours}
}

// Escape codes of every terminal there is today.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // alternate screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// Close gives the terminal back as it was.
func (d *Display[S]) Close() {
	if d.lines == nil {
		fmt.Fprint(d.out, leaveScreen)
	}
}

// Show shows a scene.
func (d *Display[S]) Show(s S) {
	if d.lines != nil {
		d.lines(s)
		return
	}
	columns, rows, err := d.size()
	if err != nil || columns <= 0 || rows <= 0 {
		columns, rows = 80, 24
	}
	var b strings.Builder
	b.WriteString(home)
	for i, l := range d.view(s, columns, rows) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l.Render(d.colours) + clearLine)
	}
	b.WriteString(clearBelow)
	fmt.Fprint(d.out, b.String()) // one write, so that the terminal shows no half-drawn view
}

// Every is due once in each period of a play.
type Every struct {
	Period time.Duration
	next   time.Duration
}

// Due reports whether a new period has begun at a time since the beginning.
func (e *Every) Due(at time.Duration) bool {
	if at < e.next {
		return false
	}
	e.next = at.Truncate(e.Period) + e.Period
	return true
}

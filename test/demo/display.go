package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// display shows scenes, one a second.
type display interface {
	show(scene)
	close()
}

func newDisplay(out *os.File, plain bool) display {
	if plain || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return &lines{out: out}
	}
	s := &screen{out: out, size: func() (int, int, error) { return term.GetSize(int(out.Fd())) }, colours: os.Getenv("NO_COLOR") == ""}
	s.open()
	return s
}

// screen redraws the whole terminal, on its alternate screen.
type screen struct {
	out     io.Writer
	size    func() (columns, rows int, err error)
	colours bool
}

// Escape codes of every terminal there is today.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // alternate screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

func (s *screen) open() { fmt.Fprint(s.out, enterScreen) }

func (s *screen) close() { fmt.Fprint(s.out, leaveScreen) }

func (s *screen) show(sc scene) {
	columns, rows, err := s.size()
	if err != nil || columns <= 0 || rows <= 0 {
		columns, rows = 80, 24
	}
	var b strings.Builder
	b.WriteString(home)
	for i, l := range view(sc, columns, rows) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l.render(s.colours) + clearLine)
	}
	b.WriteString(clearBelow)
	fmt.Fprint(s.out, b.String()) // in one piece, so that nothing flickers
}

// lines prints a line for each application every five seconds, for files and pipes.
type lines struct {
	out  io.Writer
	next time.Duration // when to print again
}

func (l *lines) close() {}

func (l *lines) show(s scene) {
	if s.at == 0 || s.at < l.next {
		return
	}
	l.next = s.at.Truncate(linesEvery) + linesEvery
	for _, p := range s.panels {
		fmt.Fprintln(l.out, p.plain(s.at))
	}
}

const linesEvery = 5 * time.Second

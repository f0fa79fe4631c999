package main

import (
	"strings"
	"unicode/utf8"
)

// style is how a piece of text looks on a terminal.
type style string

// Styles, by the parameters of the escape code that turns them on. Colours are those of the terminal's own palette, so
// that they can be read on its background whatever that is.
const (
	normal style = ""
	strong style = "1"
	faint  style = "2"
	good   style = "32"
	bad    style = "31"
	accent style = "1;36"
)

// span is text of one style without line breaks. Every rune takes one column.
type span struct {
	text string
	style
}

// line is one line of the view.
type line []span

func (l line) width() int {
	n := 0
	for _, s := range l {
		n += utf8.RuneCountInString(s.text)
	}
	return n
}

// fit cuts a line that is longer than so many columns.
func (l line) fit(columns int) line {
	if l.width() <= columns {
		return l
	}
	var out line
	left := max(0, columns-1)
	for _, s := range l {
		runes := []rune(s.text)
		if len(runes) > left {
			return append(out, span{string(runes[:left]) + strings.Repeat("…", min(1, columns)), s.style})
		}
		out, left = append(out, s), left-len(runes)
	}
	return out
}

// apart puts right at the right end of so many columns, at least two behind l.
func (l line) apart(right line, columns int) line {
	gap := max(2, columns-l.width()-right.width())
	return append(append(l, span{strings.Repeat(" ", gap), normal}), right...)
}

// render returns the line with escape codes for its styles, or without.
func (l line) render(colours bool) string {
	var b strings.Builder
	for _, s := range l {
		if colours && s.style != normal {
			b.WriteString("\x1b[" + string(s.style) + "m" + s.text + "\x1b[0m")
		} else {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// wrap breaks text at spaces into as many rows of so many columns as are given; the last one is cut.
func wrap(text string, columns, rows int) []string {
	var out []string
	current := ""
	for word := range strings.FieldsSeq(text) {
		joined := strings.TrimSpace(current + " " + word)
		if current != "" && utf8.RuneCountInString(joined) > columns && len(out) < rows-1 {
			out, joined = append(out, current), word
		}
		current = joined
	}
	if current != "" {
		out = append(out, current)
	}
	for i, row := range out {
		out[i] = line{{row, normal}}.fit(columns).render(false)
	}
	return out
}

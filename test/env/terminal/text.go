package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Style is how a piece of text looks on a terminal.
type Style string

// Styles, by the parameters of the escape code that turns them on. Colours are those of the
// terminal's own palette, so that they can be read on its background whatever that is.
const (
	Normal Style = ""
	Strong Style = "1"
	Faint  Style = "2"
	Good   Style = "32"
	Bad    Style = "31"
	Accent Style = "1;36"
)

// Span is text of one style without line breaks. Every rune takes one column.
type Span struct {
	Text string
	Style
}

// Line is one line of a view.
type Line []Span

// Text returns text of a style.
func (s Style) Text(text string) Span { return Span{text, s} }

// Width is how many columns the line takes.
func (l Line) Width() int {
	n := 0
	for _, s := range l {
		n += utf8.RuneCountInString(s.Text)
	}
	return n
}

// Fit cuts a line that is longer than so many columns.
func (l Line) Fit(columns int) Line {
	if l.Width() <= columns {
		return l
	}
	var out Line
	left := max(0, columns-1)
	for _, s := range l {
		runes := []rune(s.Text)
		if len(runes) > left {
			return append(out, Span{string(runes[:left]) + strings.Repeat("…", min(1, columns)), s.Style})
		}
		out, left = append(out, s), left-len(runes)
	}
	return out
}

// Apart puts right at the right end of so many columns, at least two behind l.
func (l Line) Apart(right Line, columns int) Line {
	gap := max(2, columns-l.Width()-right.Width())
	return append(append(l, Span{strings.Repeat(" ", gap), Normal}), right...)
}

// Join appends a span, to the last one if it looks the same.
func (l Line) Join(s Span) Line {
	if last := len(l) - 1; last >= 0 && l[last].Style == s.Style {
		l[last].Text += s.Text
		return l
	}
	return append(l, s)
}

// Render returns the line with escape codes for its styles, or without.
func (l Line) Render(colours bool) string {
	var b strings.Builder
	for _, s := range l {
		if colours && s.Style != Normal {
			b.WriteString("\x1b[" + string(s.Style) + "m" + s.Text + "\x1b[0m")
		} else {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

// Wrap breaks text at spaces into as many rows of so many columns as are given; the last one is cut.
func Wrap(text string, columns, rows int) []string {
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
		out[i] = Line{{row, Normal}}.Fit(columns).Render(false)
	}
	return out
}

// Clock returns a time as minutes and seconds.
func Clock(d time.Duration) string {
	seconds := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/foresail/foresail/api/v1alpha1"
)

// display shows scenes.
type display interface {
	show(scene)
	close()
}

func newDisplay(out *os.File, plain bool) display {
	if plain || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return &lines{out: out}
	}
	s := &screen{out: out, size: func() (int, int, error) { return term.GetSize(int(out.Fd())) }}
	fmt.Fprint(out, "\x1b[?1049h\x1b[?25l") // the alternate screen, without a cursor
	return s
}

// screen redraws the whole terminal.
type screen struct {
	out  io.Writer
	size func() (columns, rows int, err error)
}

func (s *screen) close() { fmt.Fprint(s.out, "\x1b[?25h\x1b[?1049l") }

func (s *screen) show(sc scene) {
	columns, rows, err := s.size()
	if err != nil || columns <= 0 || rows <= 0 {
		columns, rows = 80, 24
	}
	drawn := view(sc, columns, rows)
	fmt.Fprint(s.out, "\x1b[H"+strings.Join(drawn, "\x1b[K\r\n")+"\x1b[K\x1b[J") // in one piece, so that nothing flickers
}

// lines prints a line every five seconds, and each decision as it comes: those that did something, and the others where
// the reason is another than before.
type lines struct {
	out    io.Writer
	next   time.Duration
	told   int    // decisions
	reason string // of the last one
}

func (l *lines) close() {}

func (l *lines) show(s scene) {
	for ; l.told < len(s.decisions); l.told++ {
		d := s.decisions[l.told]
		if d.Time.Time.Before(s.began.Truncate(time.Second)) || d.Step == "Hold" && d.Reason == l.reason {
			continue
		}
		l.reason = d.Reason
		fmt.Fprintln(l.out, decisionLine(s, d))
	}
	if s.at < l.next {
		return
	}
	l.next = s.at.Truncate(linesEvery) + linesEvery
	fmt.Fprintf(l.out, "%5s %-14s asked %-3d running %-3d waiting %-3d %s  workers %d wanted %d  %s\n", clock(s.at), firstWords(s.phase, 14), s.asked, s.running, s.waiting,
		loadText(s), orZero(s.status.Workers), s.figures.wanted, nodeCounts(s))
}

const linesEvery = 5 * time.Second

// view draws a scene on so many columns and rows. No line is longer, and there are no more of them.
func view(s scene, columns, rows int) []string {
	out := []string{
		apart(" Foresail  worker nodes ahead of demand", clock(s.at)+" of at most "+clock(s.longest)+" ", columns),
		apart(" "+s.phase, fmt.Sprintf("checkout has %d replicas ", s.asked), columns),
		"",
		fmt.Sprintf("  pods     %s%s", strings.Repeat("●", s.running), strings.Repeat("○", s.waiting)),
		fmt.Sprintf("           %d run, %d wait for a node", s.running, s.waiting),
		"  requests " + loadBar(s, max(10, min(columns, 100)-50)) + " " + loadText(s),
		fmt.Sprintf("  workers  %d of %d to %d, %d wanted   %s", orZero(s.status.Workers), s.spec.Min, s.spec.Max, s.figures.wanted, actionText(s)),
		"",
	}
	for _, n := range s.nodes {
		out = append(out, nodeLine(n))
	}
	if s.health != "" {
		out = append(out, "", "  "+s.health)
	}
	out = append(out, "", "  decisions, the newest first")
	for i := len(s.decisions) - 1; i >= 0 && len(out) < rows-1; i-- {
		out = append(out, decisionLine(s, s.decisions[i]))
	}
	for len(out) < rows-1 {
		out = append(out, "")
	}
	out = append(out[:min(len(out), rows-1)], " Ctrl-C ends everything and leaves nothing behind")
	for i := range out {
		out[i] = fit(out[i], columns)
	}
	return out
}

// nodeLine shows a node with a block for each of its pods.
func nodeLine(n node) string {
	const room = 8 // pods of a node
	blocks := strings.Repeat("■", min(room, n.pods)) + strings.Repeat("·", max(0, room-n.pods))
	if n.state == launching {
		blocks = fmt.Sprintf("since %.0f s", n.age.Seconds())
	}
	return fmt.Sprintf("  %-22s %-2s %-9s %-10s %s", n.name, n.zone, n.market, n.state, blocks)
}

// loadText is the share of the nodes that pods request, now and at the horizon.
func loadText(s scene) string {
	if !s.figures.known {
		return "load unknown"
	}
	return fmt.Sprintf("load %.2f of %.2f, %.2f in %s", s.figures.load, threshold, s.figures.predicted, horizon(s))
}

// threshold is that of pool.yaml.
const threshold = 0.7

func horizon(s scene) string {
	for _, v := range s.status.Signals {
		if v.Horizon != nil {
			return fmt.Sprintf("%.0f s", v.Horizon.Seconds())
		}
	}
	return "a while"
}

// loadBar shows the load against the threshold, which is marked, and how it is forecast.
func loadBar(s scene, room int) string {
	if !s.figures.known {
		return ""
	}
	column := func(v float64) int { return min(room-1, max(0, int(v/(2*threshold)*float64(room)))) }
	cells := []rune(strings.Repeat("█", column(s.figures.load)) + strings.Repeat("░", room-column(s.figures.load)))
	cells[column(threshold)] = '│'
	cells[column(s.figures.predicted)] = '◆'
	return string(cells)
}

func actionText(s scene) string {
	if a := s.status.Action; a != nil {
		return a.Kind + ": " + a.Progress
	}
	return ""
}

func decisionLine(s scene, d v1alpha1.PoolDecision) string {
	at := max(0, d.Time.Sub(s.began))
	count := ""
	if d.Count > 1 {
		count = fmt.Sprintf(" ×%d", d.Count)
	}
	return fmt.Sprintf("  %5s %s %d → %d %s%s: %s", clock(at), d.Step, d.Workers, d.Wanted, d.Reason, count, d.Message)
}

func nodeCounts(s scene) string {
	counts := map[nodeState]int{}
	for _, n := range s.nodes {
		counts[n.state]++
	}
	var out []string
	for _, state := range []nodeState{launching, serving, draining, leaving} {
		if counts[state] > 0 {
			out = append(out, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	return strings.Join(out, ", ")
}

// clock returns a time as minutes and seconds.
func clock(d time.Duration) string {
	seconds := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// apart puts right at the end of a line.
func apart(left, right string, columns int) string {
	gap := max(2, columns-utf8.RuneCountInString(left)-utf8.RuneCountInString(right))
	return left + strings.Repeat(" ", gap) + right
}

// fit cuts a line that is longer than so many columns.
func fit(text string, columns int) string {
	runes := []rune(text)
	if len(runes) <= columns {
		return text
	}
	return string(runes[:max(0, columns-1)]) + "…"
}

// firstWords cuts a text at a word.
func firstWords(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	cut := string([]rune(text)[:most])
	if i := strings.LastIndex(cut, " "); i > 0 {
		cut = cut[:i]
	}
	return cut
}

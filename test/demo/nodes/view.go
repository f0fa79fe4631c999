package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/test/env/terminal"
)

// lines prints a line every five seconds, and each decision as it comes: those that did something,
// and the others where the reason is another than before.
type lines struct {
	out     io.Writer
	due     terminal.Every // to print a line again
	printed int            // decisions
	reason  string         // of the last one
}

func newLines(out io.Writer) *lines {
	return &lines{out: out, due: terminal.Every{Period: 5 * time.Second}}
}

func (l *lines) show(s scene) {
	for ; l.printed < len(s.decisions); l.printed++ {
		d := s.decisions[l.printed]
		if d.Time.Time.Before(s.began.Truncate(time.Second)) || d.Step == "Hold" && d.Reason == l.reason {
			continue
		}
		l.reason = d.Reason
		fmt.Fprintln(l.out, decisionLine(s, d))
	}
	if !l.due.Due(s.at) {
		return
	}
	fmt.Fprintf(l.out, "%5s %-14s asked %-3d running %-3d waiting %-3d %s  workers %d desired %d  %s\n",
		terminal.Clock(s.at), firstWords(s.phase, 14), s.asked, s.running, s.waiting,
		loadText(s), orZero(s.status.Workers), s.figures.desired, nodeCounts(s))
}

// view draws a scene on so many columns and rows. No line is longer, and there are no more of them.
func view(s scene, columns, rows int) []terminal.Line {
	line := func(text string) terminal.Line { return terminal.Line{terminal.Normal.Text(text)} }
	out := []terminal.Line{
		line(" Foresail  worker nodes ahead of demand").Apart(line(terminal.Clock(s.at)+" of at most "+terminal.Clock(s.longest)+" "), columns),
		line(" "+s.phase).Apart(line(fmt.Sprintf("checkout has %d replicas ", s.asked)), columns),
		nil,
		line(fmt.Sprintf("  pods     %s%s", strings.Repeat("●", s.running), strings.Repeat("○", s.waiting))),
		line(fmt.Sprintf("           %d run, %d wait for a node", s.running, s.waiting)),
		line("  requests " + loadBar(s, max(10, min(columns, 100)-50)) + " " + loadText(s)),
		line(fmt.Sprintf("  workers  %d of %d to %d, %d desired   %s", orZero(s.status.Workers), s.spec.Min, s.spec.Max,
			s.figures.desired, actionText(s))),
		nil,
	}
	for _, n := range s.nodes {
		out = append(out, line(nodeLine(n)))
	}
	if s.health != "" {
		out = append(out, nil, line("  "+s.health))
	}
	out = append(out, nil, line("  decisions, the newest first"))
	for i := len(s.decisions) - 1; i >= 0 && len(out) < rows-1; i-- {
		out = append(out, line(decisionLine(s, s.decisions[i])))
	}
	for len(out) < rows-1 {
		out = append(out, nil)
	}
	out = append(out[:min(len(out), rows-1)], line(" Ctrl-C ends everything and leaves nothing behind"))
	for i := range out {
		out[i] = out[i].Fit(columns)
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
	return fmt.Sprintf("  %5s %s %d → %d %s%s: %s", terminal.Clock(at), d.Step, d.Workers, d.Desired, d.Reason, count,
		d.Message)
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

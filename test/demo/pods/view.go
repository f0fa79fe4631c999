package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/foresail/foresail/test/env/stack"
	"github.com/foresail/foresail/test/env/terminal"
)

type line = terminal.Line

const (
	normal = terminal.Normal
	strong = terminal.Strong
	faint  = terminal.Faint
	good   = terminal.Good
	bad    = terminal.Bad
	accent = terminal.Accent
)

// The view is made for a terminal of 80 by 24 and fills larger ones up to maxColumns.
const (
	maxColumns  = 120
	labelColumn = 18 // where values begin
	fullRows    = 24 // of a view with graphs one row high
	maxGraph    = 6  // rows of a graph
)

// view draws a scene on so many columns and rows. No line is longer, and there are no more of them.
func view(s scene, columns, rows int) []line {
	columns = min(columns, maxColumns)
	lines := append(header(s, columns), nil)
	for _, p := range s.panels {
		lines = append(lines, p.title(columns))
		lines = append(lines, p.loads(columns)...)
		lines = append(lines, p.replicas(columns), p.requests())
		if graphRows := min((rows-fullRows)/(2*len(s.panels))+1, maxGraph); rows >= fullRows {
			lines = append(lines, p.history(s, columns, graphRows)...)
		}
		if rows >= fullRows-2*len(s.panels) {
			lines = append(lines, p.decision(columns)...)
		}
		lines = append(lines, nil)
	}
	lines[len(lines)-1] = line{faint.Text(" Look inside: export KUBECONFIG=" + s.kubeconfig)}
	lines = append(lines, line{faint.Text(" Ctrl-C ends everything and leaves nothing behind")})
	lines = lines[:min(len(lines), rows)]
	for i := range lines {
		lines[i] = lines[i].Fit(columns)
	}
	return lines
}

func header(s scene, columns int) []line {
	end := s.profile.Duration()
	clock := fmt.Sprintf("%s of %s ", terminal.Clock(min(s.at, end)), terminal.Clock(end))
	title := line{strong.Text(" Foresail"), faint.Text("  one ramp of load, two applications")}
	state := line{normal.Text(fmt.Sprintf(" %-29s", phase(s.profile, s.at)))}
	rate := line{strong.Text(fmt.Sprintf("%.0f requests/s ", s.profile.Rate(s.at)))}
	room := max(0, columns-state.Width()-rate.Width()-2)
	return []line{
		title.Apart(line{normal.Text(clock)}, columns),
		append(state, progress(s.at.Seconds()/end.Seconds(), room)...).Apart(rate, columns),
	}
}

// label begins a line of a panel.
func label(text string) line { return line{faint.Text(fmt.Sprintf("  %-*s", labelColumn-2, text))} }

func (p panel) title(columns int) line {
	reads := "its HPA reads the load that is forecast"
	if p.app.Reactive {
		reads = "its HPA reads the present load"
	}
	title := line{accent.Text(" " + strings.ToUpper(p.app.Name)), normal.Text("  " + reads)}
	if m := p.last(); m.Load > threshold(p.app) {
		return title.Apart(line{bad.Text("above the threshold ")}, columns)
	}
	return title
}

// loads are the load of a pod now and at the horizon, against the threshold in the middle.
func (p panel) loads(columns int) []line {
	τ := threshold(p.app)
	room := max(10, columns-labelColumn-18)
	row := func(name string, load float64) line {
		value := strong.Text(fmt.Sprintf(" %.2f", load))
		if load > τ {
			value.Style = bad
		}
		return append(append(label(name), bar(load, τ, 2*τ, room)...), value, faint.Text(fmt.Sprintf(" of %.2f", τ)))
	}
	name := fmt.Sprintf("load in %.0f s", p.forecast.horizon.Seconds())
	if p.forecast.horizon == 0 {
		name = "load as read"
	}
	ahead := row(name, p.forecast.load)
	if !p.forecast.known {
		ahead = append(label("forecast"), bad.Text("none: "+whyNone(p.last())))
	}
	return []line{row("load per pod", p.last().Load), ahead}
}

func whyNone(m stack.Moment) string {
	if m.Err != nil {
		return m.Err.Error()
	}
	return "the adapter has not reported anything yet"
}

// replicas are a dot for each pod: ready, asked for, or only desired.
func (p panel) replicas(columns int) line {
	m := p.last()
	want, served := desired(p.app, m)
	count := "?"
	if served {
		count = fmt.Sprint(want)
	}
	ready := min(m.Ready, m.Replicas)
	dots := line{
		good.Text(strings.Repeat("●", ready)),
		normal.Text(strings.Repeat("○", m.Replicas-ready)),
		bad.Text(strings.Repeat("·", max(0, want-m.Replicas))),
	}
	dots = append(dots, normal.Text(strings.Repeat(" ", max(1, min(p.app.Max, columns-labelColumn-34)+2-dots.Width()))))
	return append(append(label("replicas"), dots...),
		faint.Text("desired "), strong.Text(fmt.Sprintf("%-3s", count)),
		faint.Text(" asked "), strong.Text(fmt.Sprintf("%-3d", m.Replicas)),
		faint.Text(" ready "), strong.Text(fmt.Sprint(m.Ready)))
}

// requests are how the load generator fares: latencies of the last ten seconds, failures since the beginning.
func (p panel) requests() line {
	stats := p.last().Stats
	failed := normal.Text(fmt.Sprintf("failed %d  dropped %d", stats.Failed+stats.TimedOut, stats.Dropped))
	if stats.Failed+stats.TimedOut+stats.Dropped > 0 {
		failed.Style = bad
	}
	return append(label("requests"),
		normal.Text(fmt.Sprintf("%3.0f/s  ", stats.Rate)),
		strong.Text(fmt.Sprintf("%-24s", "p50 "+latency(stats.Recent.P50,
			stats.Recent.Count)+"  p90 "+latency(stats.Recent.P90, stats.Recent.Count))),
		failed)
}

// latency returns a duration as people say it; "-" if nothing was measured.
func latency(d time.Duration, measured int) string {
	switch {
	case measured == 0:
		return "-"
	case d < 995*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

// history is the run so far: replicas asked for, and load per pod.
func (p panel) history(s scene, columns, rows int) []line {
	room := max(10, columns-labelColumn-2)
	end := s.profile.Duration()
	highest := float64(needed(p.app, most(s.profile)))
	for _, other := range s.panels {
		for _, m := range other.moments {
			highest = max(highest, float64(m.Replicas))
		}
	}
	τ := threshold(p.app)
	replicas := overTime(p.moments, end, room, func(m stack.Moment) float64 { return float64(m.Replicas) })
	loads := overTime(p.moments, end, room, func(m stack.Moment) float64 { return m.Load })
	return append(
		named("replicas so far", graph(replicas, highest, highest, rows)),
		named("load so far", graph(loads, τ, 2*τ, rows))...)
}

// named puts a label in front of the first of several lines, and room in front of the others.
func named(name string, rows []line) []line {
	for i := range rows {
		begin := label("")
		if i == 0 {
			begin = label(name)
		}
		rows[i] = append(begin, rows[i]...)
	}
	return rows
}

// decision is the last decision with its age and its reason, on two lines.
func (p panel) decision(columns int) []line {
	text := "none since the load began"
	if d := p.forecast.decision; d != nil {
		verdict, _, _ := strings.Cut(d.Message, ": ") // the numbers behind it are of that moment
		text = fmt.Sprintf("%.0f s ago: %s", p.forecast.age.Seconds(), verdict)
	}
	const begin = "  decision  "
	out := []line{{faint.Text(begin)}, {faint.Text(strings.Repeat(" ", len(begin)))}}
	for i, row := range terminal.Wrap(text, max(1, columns-len(begin)-1), len(out)) {
		out[i] = append(out[i], normal.Text(row))
	}
	return out
}

// plain returns how an application stands on one line without escape codes.
func (p panel) plain(at time.Duration) string {
	m := p.last()
	want := "?"
	if n, ok := desired(p.app, m); ok {
		want = fmt.Sprint(n)
	}
	ahead := "no forecast: " + whyNone(m)
	if p.forecast.known {
		ahead = fmt.Sprintf("%.2f in %.0f s", p.forecast.load, p.forecast.horizon.Seconds())
	}
	return fmt.Sprintf("%5s %-10s %3.0f/s  load %.2f of %.2f, %s  replicas %s desired %d asked %d ready  p50 %s p90 %s  failed %d dropped %d",
		terminal.Clock(at), p.app.Name, m.Rate, m.Load, threshold(p.app), ahead, want, m.Replicas, m.Ready,
		latency(m.Stats.Recent.P50, m.Stats.Recent.Count), latency(m.Stats.Recent.P90, m.Stats.Recent.Count),
		m.Stats.Failed+m.Stats.TimedOut, m.Stats.Dropped)
}

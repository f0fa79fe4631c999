package evaluation

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/foresail/foresail/internal/lab/report"
	"github.com/foresail/foresail/internal/lab/score"
)

// verdict is what the figures come to, in sentences. What cannot be told from chance is not told.
func (s *Span) verdict() []string {
	if len(s.Rows) == 0 {
		return []string{fmt.Sprintf("Of the last %s nothing is known.", longSpan(s.Name))}
	}
	ran := s.row("")
	if s.littleKnown() {
		return []string{fmt.Sprintf("Too little data to judge by: %s known, it takes %s. In it too few pods were ready for %s, with %s pod-hours.",
			hoursText(s.KnownHours), hoursText(judgedAfter.Hours()), minutes(ran.TooFewMinutes.Value),
			report.Brief(ran.PodHours.Value))}
	}
	out := []string{fmt.Sprintf("In the last %s%s too few pods were ready for %s (%s of the time), with %s pod-hours.",
		longSpan(s.Name), s.knownOf(), minutes(ran.TooFewMinutes.Value), report.BriefPercent(ran.TooFewShare),
		report.Brief(ran.PodHours.Value))}
	if v := ran.AtMaximumMinutes.Value; v > 0 {
		out = append(out, fmt.Sprintf("For another %s (%s of the time) the target was at its maximum, with more load than that many pods hold: only a higher maximum helps.",
			minutes(v), report.BriefPercent(v/(60*s.KnownHours))))
	}
	if p := s.prices; p != nil {
		out = append(out, fmt.Sprintf("That cost %s: %s for an hour of a pod, and %s for a minute in which the load was above the threshold.", p.Text(ran.Cost.Value), p.Text(p.PodHour), p.Text(p.Minute)))
	}
	if s.row(foresailScaler) == nil {
		return out
	}
	out = append(out, s.others(ran)...)
	if s.Blocks < score.FewestBlocks {
		return append(out, fmt.Sprintf("That is too short a time to tell a difference: %d known hours are needed.",
			score.FewestBlocks))
	}
	out = append(out, s.worth())
	if s.prices != nil {
		out = append(out, s.money())
	}
	return append(out, s.trust())
}

// judgedAfter is how much of the load must be known before shares of it mean anything, as on the
// page of the dashboard.
const judgedAfter = time.Hour

// littleKnown reports whether less than that is known. A scrape that is missing at an end does not count.
func (s *Span) littleKnown() bool { return s.KnownHours < knownShare*judgedAfter.Hours() }

// knownShare is the share of some time from which on it counts as known.
const knownShare = 0.995

func (s *Span) row(scaler string) *Row {
	for i := range s.Rows {
		if s.Rows[i].Scaler == scaler {
			return &s.Rows[i]
		}
	}
	return nil
}

// knownOf is for how much of the time anything is known, if not for all.
func (s *Span) knownOf() string {
	if s.KnownHours > knownShare*s.Hours {
		return ""
	}
	return fmt.Sprintf(" (of which %s of %s are known)", hoursText(s.KnownHours), hoursText(s.Hours))
}

// others says what an HPA and Foresail would have had in the simulator.
func (s *Span) others(ran *Row) []string {
	hpa, ours := s.row(hpaScaler), s.row(foresailScaler)
	return []string{
		fmt.Sprintf("An HPA on the same load would have had %s, with %s.", interval(hpa.TooFewMinutes, minutes),
			podsThan(hpa, ran)),
		fmt.Sprintf("Foresail, simulated in the same way, has %s, with %s.", interval(ours.TooFewMinutes, minutes),
			podsThan(ours, ran)),
	}
}

// podsThan compares pod-hours with those that ran.
func podsThan(row, ran *Row) string {
	if !row.ThanRan.PodHours.Clear() {
		return "as many pod-hours as far as can be told"
	}
	return moreOf(row.ThanRan.PodHours.Value, ran.PodHours.Value) + " pod-hours"
}

// moreOf writes a difference as a share of what it is a difference from.
func moreOf(more, of float64) string {
	word := report.MoreOr(more, "fewer")
	if of <= 0 {
		return fmt.Sprintf("%s %s", report.Brief(math.Abs(more)), word)
	}
	return report.BriefPercent(math.Abs(more)/of) + " " + word
}

// worth compares the HPA with Foresail where both are simulated, in the same way.
func (s *Span) worth() string {
	hpa, ours := s.row(hpaScaler), s.row(foresailScaler)
	tooFew, pods := hpa.ThanForesail.TooFewMinutes, hpa.ThanForesail.PodHours
	time := interval(abs(tooFew), minutes)
	share := report.BriefPercent(math.Abs(pods.Value) / ours.PodHours.Value)
	cost := fmt.Sprintf("%s pod-hours (%s)", interval(abs(pods), report.Brief), share)
	switch moreTooFew, lessTooFew := tooFew.Clear() && tooFew.Value > 0, tooFew.Clear() && tooFew.Value < 0; {
	case moreTooFew && pods.Clear() && pods.Value < 0:
		return fmt.Sprintf("So Foresail saves %s with too few pods against an HPA, for %s more.", time, cost)
	case moreTooFew && pods.Clear():
		return fmt.Sprintf("So Foresail saves %s with too few pods against an HPA, and %s.", time, cost)
	case moreTooFew:
		return fmt.Sprintf("So Foresail saves %s with too few pods against an HPA, for as many pod-hours as far as can be told.", time)
	case lessTooFew && pods.Clear() && pods.Value > 0:
		return fmt.Sprintf("So Foresail saves %s against an HPA, but has %s more with too few pods.", cost, time)
	case lessTooFew && pods.Clear():
		return fmt.Sprintf("So an HPA is better on this load: it saves %s with too few pods, and Foresail no pods.",
			time)
	case lessTooFew:
		return fmt.Sprintf("So an HPA is better on this load: it saves %s with too few pods, for as many pod-hours as far as can be told.", time)
	case pods.Clear() && pods.Value > 0:
		return fmt.Sprintf("So Foresail saves %s against an HPA. In the time with too few pods there is no difference that can be told.", cost)
	case pods.Clear():
		return fmt.Sprintf("So Foresail costs %s more than an HPA. In the time with too few pods there is no difference that can be told.", cost)
	default:
		return "So between Foresail and an HPA there is no difference that can be told from this load."
	}
}

// money compares what the HPA costs with what Foresail costs where both are simulated.
func (s *Span) money() string {
	more := *s.row(hpaScaler).ThanForesail.Cost
	if !more.Clear() {
		return "In money there is no difference that can be told."
	}
	c := cell(abs(more), s.prices.Amount)
	return fmt.Sprintf("In money an HPA costs %s %s (%s) %s than Foresail.",
		c.Text, s.prices.Currency, c.Interval, report.MoreOr(more.Value, "less"))
}

// trust compares what ran with what the simulator makes of Foresail.
func (s *Span) trust() string {
	ours := s.row(foresailScaler)
	if !ours.ThanRan.TooFewMinutes.Clear() && !ours.ThanRan.PodHours.Clear() {
		return "What ran is as the simulator has Foresail, as far as can be told."
	}
	var parts []string
	if d := ours.ThanRan.TooFewMinutes; d.Clear() {
		parts = append(parts,
			fmt.Sprintf("%s %s with too few pods", interval(abs(d), minutes), report.MoreOr(d.Value, "less")))
	}
	if d := ours.ThanRan.PodHours; d.Clear() {
		parts = append(parts, fmt.Sprintf("%s %s pod-hours", interval(abs(d), report.Brief),
			report.MoreOr(d.Value, "fewer")))
	}
	text := fmt.Sprintf("Foresail as it is simulated has %s than what ran", strings.Join(parts, " and "))
	hpa := s.row(hpaScaler)
	if little(ours.ThanRan.TooFewMinutes, hpa.ThanForesail.TooFewMinutes) &&
		little(ours.ThanRan.PodHours, hpa.ThanForesail.PodHours) {
		return text + ", which is little next to the difference from an HPA."
	}
	return text + ". If Foresail did set the replicas, the simulator may be off as much for an HPA; " +
		"if something else did, such as an HPA of your own, this is the difference that Foresail would make."
}

// littleShare is how much of a difference another one may be that does not put it in doubt.
const littleShare = 0.2

func little(off, difference Estimate) bool {
	return !off.Clear() || difference.Clear() && math.Abs(off.Value) <= littleShare*math.Abs(difference.Value)
}

func abs(e Estimate) Estimate {
	if e.Value >= 0 {
		return e
	}
	low, high := -*e.High, -*e.Low
	return Estimate{-e.Value, &low, &high}
}

// interval returns an estimate with its interval.
func interval(e Estimate, format func(float64) string) string {
	if e.Low == nil {
		return format(e.Value)
	}
	return fmt.Sprintf("%s (%s to %s)", format(e.Value), report.Brief(*e.Low), report.Brief(*e.High))
}

func minutes(v float64) string { return report.Brief(v) + " min" }

// hoursText writes hours, or minutes below one.
func hoursText(v float64) string {
	if v < knownShare {
		return minutes(60 * v)
	}
	return report.Brief(v) + " h"
}

// longSpan writes a span such as 7d in words.
func longSpan(name string) string {
	d, err := model.ParseDuration(name)
	switch days := time.Duration(d) / (24 * time.Hour); {
	case err != nil:
		return name
	case time.Duration(d) == 24*time.Hour:
		return "day"
	case days > 0 && time.Duration(d)%(24*time.Hour) == 0:
		return fmt.Sprintf("%d days", days)
	case time.Duration(d) == time.Hour:
		return "hour"
	case time.Duration(d)%time.Hour == 0:
		return fmt.Sprintf("%d hours", time.Duration(d)/time.Hour)
	case time.Duration(d) == time.Minute:
		return "minute"
	case time.Duration(d)%time.Minute == 0:
		return fmt.Sprintf("%d minutes", time.Duration(d)/time.Minute)
	}
	return name
}

package backtest

import (
	"context"
	"slices"
	"time"

	"github.com/foresail/foresail/internal/lab/score"
)

// Timeline is how some hours went: those of the trace in which the load grew most.
type Timeline struct {
	From    time.Duration // since the beginning of the trace
	Step    time.Duration // each point stands for
	Rate    []float64     // requests per second that arrived, on average
	Needed  []float64     // the most pods that were needed in a step
	Scalers []TimelineOf
}

// TimelineOf is how many pods a scaler had.
type TimelineOf struct {
	Name  string
	Ready []float64 // the fewest that were ready in a step
}

const (
	timelineLength = time.Hour
	timelinePoints = 240
)

// timelineScalers are those that a timeline shows: more could not be told apart.
var timelineScalers = []string{"hpa-cpu", "keda", "foresail-total"}

// timeline plays some scalers again in the hour whose load rises most within five minutes.
func (p *player) timeline(ctx context.Context) (*Timeline, error) {
	part := p.steepest()
	seconds := int((part.to - part.from) / second)
	step := max(1, (seconds+timelinePoints-1)/timelinePoints)
	t := &Timeline{From: time.Duration(part.from) * time.Millisecond, Step: time.Duration(step) * time.Second}
	need := score.Need{Threshold: p.Threshold, Min: p.Min, Max: p.Max}
	for _, name := range timelineScalers {
		if !slices.Contains(p.Scalers, name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s := p.setting(name)
		record, _, err := p.record(&s, part, p.Seeds[0])
		if err != nil {
			return nil, err
		}
		of, first := TimelineOf{Name: name}, len(t.Scalers) == 0
		for seconds := range slices.Chunk(record.Seconds, step) {
			rate, needed, ready := 0.0, 0, seconds[0].Ready
			for _, s := range seconds {
				rate, needed, ready = rate+s.Rate, max(needed, need.Pods(s.Offered)), min(ready, s.Ready)
			}
			of.Ready = append(of.Ready, float64(ready))
			if first {
				t.Rate, t.Needed = append(t.Rate, rate/float64(len(seconds))), append(t.Needed, float64(needed))
			}
		}
		t.Scalers = append(t.Scalers, of)
	}
	return t, nil
}

// steepest is the hour around the largest rise of the load within five minutes.
func (p *player) steepest() section {
	const within = 5 * 60 * second
	end := p.Trace.Length().Truncate(time.Second).Milliseconds()
	at, most := int64(0), -1.0
	for t := int64(0); t+within <= end; t += 60 * second {
		if rise := p.Trace.Rate(t+within) - p.Trace.Rate(t); rise > most {
			at, most = t, rise
		}
	}
	length := min(timelineLength.Milliseconds(), end)
	from := max(0, min(at-length/3, end-length)) / second * second
	return section{from, from + length}
}

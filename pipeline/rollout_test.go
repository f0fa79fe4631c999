package pipeline_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// rollout is a constant load on a fleet whose pods are replaced one after the other, each read once
// an interval at a phase of its own. What a pod reads is its average load over an averaging window.
// A new pod is Ready before an old one is deleted, and both are known in whole seconds only, as a
// pod's conditions record them; load moves once the proxies have received the change.
type rollout struct {
	load                float64
	pods                int
	interval, averaging int64    // ms
	members             []member // those that are replaced, and then their replacements
}

// member is one pod: ready and deleted by its conditions, in rotation of the proxies from one time to another.
type member struct {
	ready, deleted, from, to int64
	phase                    int64
}

const forever = math.MaxInt64

// newRollout replaces pods from a time on, some seconds apart.
func (r fleets) newRollout(load float64, pods int, interval, averaging time.Duration, from int64) rollout {
	o := rollout{load: load, pods: pods, interval: interval.Milliseconds(), averaging: averaging.Milliseconds()}
	whole := func(ms int64) int64 { return ms / 1000 * 1000 }
	delay := func() int64 { return int64(r.Between(50, 1500)) }
	at := from
	for range pods {
		o.members = append(o.members,
			member{from: -1_000_000, ready: -1_000_000, to: forever, deleted: forever,
				phase: int64(r.Between(0, float64(o.interval)))})
	}
	for i := range pods {
		at += int64(r.Between(1000, 6000))
		o.members = append(o.members,
			member{ready: whole(at), from: at + delay(), to: forever, deleted: forever,
				phase: int64(r.Between(0, float64(o.interval)))})
		gone := at + int64(r.Between(20, 300))
		o.members[i].deleted, o.members[i].to = whole(gone), gone+delay()
	}
	return o
}

// carried is the share of a member over the averaging window up to a time.
func (o *rollout) carried(m member, t int64) float64 {
	const step = 50
	sum := 0.0
	for u := t - o.averaging; u < t; u += step {
		if u < m.from || u >= m.to {
			continue
		}
		n := 0
		for _, x := range o.members {
			if x.from <= u && u < x.to {
				n++
			}
		}
		sum += o.load / float64(n) * step
	}
	return sum / float64(o.averaging)
}

// samples are those that can be read of every member up to now, of the last minutes.
func (o *rollout) samples(end int64) [][]pipeline.Sample {
	all := make([][]pipeline.Sample, len(o.members))
	for i, m := range o.members {
		for t := m.phase; t <= end && t < m.deleted; t += o.interval {
			if t > m.ready+500 {
				all[i] = append(all[i], pipeline.Sample{T: t, V: o.carried(m, t)})
			}
		}
	}
	return all
}

func (o *rollout) at(now int64, all [][]pipeline.Sample) pipeline.Input {
	in := at(now)
	in.Target = o.pods
	for i, m := range o.members {
		if m.ready > now {
			continue
		}
		x := pipeline.Instance{ID: fmt.Sprint(i), Start: m.ready}
		if m.deleted <= now {
			x.End = m.deleted
		}
		n, _ := slices.BinarySearchFunc(all[i], now+1, func(s pipeline.Sample, t int64) int { return int(s.T - t) })
		x.Samples = all[i][:n]
		in.Instances = append(in.Instances, x)
	}
	return in
}

// Pods that are replaced under a constant load are neither a fall nor a rise, also where readings
// are seconds apart or averages of ten seconds, as those of a rate are. With two pods, every pod is
// half of the load.
func TestAdaptiveSeesNoTrendInARollingUpdate(t *testing.T) {
	const seeds, begin = 5, 200_000
	for _, c := range []struct {
		pods        int
		least, most float64
	}{{2, 0.8, 1.3}, {3, 0.9, 1.15}, {5, 0.9, 1.15}, {20, 0.9, 1.15}} {
		for _, interval := range []time.Duration{time.Second, 5 * time.Second} {
			for _, averaging := range []time.Duration{time.Second, 10 * time.Second} {
				t.Run(fmt.Sprintf("%d pods read every %s of the last %s", c.pods, interval, averaging), func(t *testing.T) {
					for seed := range uint64(seeds) {
						o := newFleets(seed).newRollout(0.6*tau*float64(c.pods), c.pods, interval, averaging, begin)
						end := o.members[len(o.members)-1].from + 40_000
						all := o.samples(end)
						for now := int64(begin); now < end; now += 1000 {
							f := run(t, adaptive(), o.at(now, all))
							require.GreaterOrEqual(t, f.PlannedLoad, c.least*o.load, "seed %d at %d ms", seed, now)
							require.LessOrEqual(t, f.PlannedLoad, c.most*o.load, "seed %d at %d ms", seed, now)
							require.NotEqual(t, pipeline.ScaleUp, f.Decision.Action, "seed %d at %d ms", seed, now)
						}
					}
				})
			}
		}
	}
}

// A fall together with the end of an instance is held for T_R, as the others may not have been read
// since; then it shows.
func TestAdaptiveHoldsWhatAnEndedInstanceCarried(t *testing.T) {
	p := adaptive()
	hold := p.RedistributionTimeout.Milliseconds()
	for _, c := range []struct {
		since int64
		load  float64
	}{{0, 4}, {5_000, 4}, {hold - 1000, 4}, {hold + 3000, 3}, {hold + 20_000, 3}} {
		in := at(300_000 + c.since)
		for i := range 4 {
			x := pipeline.Instance{ID: fmt.Sprint(i), Start: -1_000_000,
				Samples: everySecond(0, repeat(int(in.Now/1000)+1, 1)...)}
			if i == 0 {
				x.End = 300_000
			}
			in.Instances = append(in.Instances, x)
		}
		f := run(t, p, in)
		require.InDelta(t, c.load, f.Level, 0.05, "%d ms after the end", c.since)
	}
}

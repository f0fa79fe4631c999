package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// summary lists how long pods waited and how long nodes ran.
func (l *ledger) summary(reactive bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-22s %s\n", name, fmt.Sprintf(format, args...))
	}
	mode := "with a forecast"
	if reactive {
		mode = "without a forecast"
	}
	fmt.Fprintf(&b, "\nThe pool, %s\n", mode)
	waits, never := l.waits()
	line("pods", "%d, and %d that no node took", len(waits), never)
	line("waited for a node", "p50 %s   p99 %s   longest %s", seconds(quantile(waits, 0.5)),
		seconds(quantile(waits, 0.99)), seconds(quantile(waits, 1)))
	line("waited longer than 1 s", "%d of them; all pods together waited for %s", longer(waits, time.Second),
		seconds(total(waits)))
	launched, ahead := l.launches()
	line("nodes", "%d launched for the load, %d of them while no pod was waiting; %d at the most", launched, ahead,
		l.peak)
	line("node-minutes", "%.1f", l.nodeTime(now).Minutes())
	line("decisions", "%s", l.reasons())
	line("at the end", "%d workers, %d desired, open: %t", orZero(l.pool.Status.Workers), orZero(l.pool.Status.Desired),
		l.pool.Status.Action != nil)
	return b.String()
}

// waits are how long the pods that came with the load waited for their node, and how many have none.
func (l *ledger) waits() (waits []time.Duration, never int) {
	for _, p := range l.pods {
		switch {
		case p.seen.Before(l.began):
		case !p.bound.IsZero():
			waits = append(waits, p.bound.Sub(p.seen))
		case !p.gone:
			never++
		}
	}
	slices.Sort(waits)
	return waits, never
}

// launches counts the nodes that were launched since the load began, and those of them that no pod
// had to ask for.
func (l *ledger) launches() (all, ahead int) {
	for _, i := range l.instances {
		if i.seen.Before(l.began) {
			continue
		}
		all++
		if i.ahead {
			ahead++
		}
	}
	return all, ahead
}

// nodeTime is what the instances were there for since the load began, all together.
func (l *ledger) nodeTime(now time.Time) (sum time.Duration) {
	for _, i := range l.instances {
		from, to := i.seen, now
		if from.Before(l.began) {
			from = l.began
		}
		if !i.ended.IsZero() {
			to = i.ended
		}
		sum += max(0, to.Sub(from))
	}
	return sum
}

// reasons counts decisions by what they did and why, those most made first.
func (l *ledger) reasons() string {
	counts := map[string]int{}
	for _, d := range l.decisions {
		if !d.Time.Time.Before(l.began.Truncate(time.Second)) {
			counts[d.Step+" "+d.Reason] += int(max(1, d.Count))
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var out []string
	for _, name := range names {
		out = append(out, fmt.Sprintf("%s ×%d", name, counts[name]))
	}
	return strings.Join(out, ", ")
}

// quantile is the value that so large a share of sorted values is not above; 0 if there are none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(0, rank-1)]
}

// longer counts the values above a limit.
func longer(values []time.Duration, limit time.Duration) (n int) {
	for _, v := range values {
		if v > limit {
			n++
		}
	}
	return n
}

func total(values []time.Duration) (sum time.Duration) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func orZero(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

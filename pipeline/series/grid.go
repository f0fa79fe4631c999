package series

// MaxTicks bounds the grid of one run. A window of a day at one second is below it.
const MaxTicks = 100_000

// Grid is the uniform time grid of one window: N ticks, Step ms apart, the first at Start. All ticks are
// multiples of Step.
type Grid struct {
	Start, Step int64
	N           int
}

// NewGrid returns the ticks t with now − window < t ≤ now (ms).
func NewGrid(now, window, step int64) Grid {
	first := (FloorDiv(now-window, step) + 1) * step
	last := FloorDiv(now, step) * step
	return Grid{Start: first, Step: step, N: int((last-first)/step) + 1}
}

// From returns the grid without the ticks before t (ms).
func (g Grid) From(t int64) Grid {
	skip := g.Index(t)
	return Grid{Start: g.Tick(skip), Step: g.Step, N: g.N - skip}
}

// Tick returns the time of tick k (ms).
func (g Grid) Tick(k int) int64 { return g.Start + int64(k)*g.Step }

// Index returns the index of the first tick at or after t (ms), limited to [0, N].
func (g Grid) Index(t int64) int {
	if t <= g.Start {
		return 0
	}
	if t > g.Tick(g.N-1) {
		return g.N
	}
	return int((t - g.Start + g.Step - 1) / g.Step)
}

// Ticks is the range of ticks [From, To).
type Ticks struct{ From, To int }

// Empty reports whether the range is empty.
func (t Ticks) Empty() bool { return t.From >= t.To }

// Contains reports whether tick k is in the range.
func (t Ticks) Contains(k int) bool { return t.From <= k && k < t.To }

// Intersect returns the ticks that are in both ranges.
func (t Ticks) Intersect(u Ticks) Ticks { return Ticks{max(t.From, u.From), min(t.To, u.To)} }

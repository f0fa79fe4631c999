package capacitybuffer

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSize(t *testing.T) {
	for name, c := range map[string]struct {
		need
		want int
	}{
		"a rise":                       {need{now: 8, then: 14, max: 100}, 6},
		"steady":                       {need{now: 8, then: 8, max: 100}, 0},
		"a fall":                       {need{now: 8, then: 3, max: 100}, 0},
		"the minimum":                  {need{now: 8, then: 3, min: 2, max: 100}, 2},
		"more than the minimum":        {need{now: 8, then: 14, min: 2, max: 100}, 6},
		"the maximum":                  {need{now: 8, then: 14, max: 4}, 4},
		"the maximum and the minimum":  {need{now: 8, then: 8, min: 3, max: 1}, 1},
		"beyond what the target takes": {need{now: 8, then: 14, min: 2, max: -1}, 0},
		"from zero":                    {need{now: 0, then: 3, max: 5}, 3},
	} {
		assert.Equal(t, c.want, c.size(), name)
		var h hold
		assert.Equal(t, c.want, h.next(time.Now(), time.Minute, c.need), name)
	}
}

func TestLimit(t *testing.T) {
	of := func(n int32) *int32 { return &n }
	assert.Equal(t, 12, limitOf(nil, of(20), 8), "spare pods and pods together are no more than the target may have")
	assert.Equal(t, 5, limitOf(of(5), of(20), 8))
	assert.Equal(t, 2, limitOf(of(5), of(10), 8), "room for more would never be used")
	assert.Equal(t, 0, limitOf(of(5), of(10), 11))
	assert.Equal(t, 5, limitOf(of(5), nil, 8))
}

// step is a need at a time (s), and the size that follows.
type step struct{ at, now, then, want int }

func TestHold(t *testing.T) {
	const window = 5 * time.Minute
	epoch := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, steps := range map[string][]step{
		"grows at once": {{0, 8, 8, 0}, {2, 8, 12, 4}, {4, 8, 15, 7}},
		"shrinks once what was needed has not been for the window": {
			{0, 8, 14, 6}, {2, 8, 10, 6}, {300, 8, 9, 6}, {301, 8, 9, 2}, {302, 8, 8, 2}, {601, 8, 8, 1},
			{602, 8, 8, 0},
		},
		"pods take the place of spare ones": {{0, 8, 14, 6}, {10, 10, 14, 4}, {20, 14, 14, 0}},
		"what was forecast too much of is held": {
			{0, 8, 20, 12}, {60, 12, 16, 8}, {120, 16, 16, 4}, {301, 16, 16, 0},
		},
		"pods that go are not replaced by spare ones": {{0, 20, 20, 0}, {10, 12, 12, 0}},
		"a fall after a rise holds no more than there was": {
			{0, 8, 10, 2}, {10, 10, 10, 0}, {20, 6, 6, 2}, {301, 6, 6, 0},
		},
		"a second rise counts again": {{0, 8, 14, 6}, {200, 8, 14, 6}, {400, 8, 8, 6}, {501, 8, 8, 0}},
	} {
		var h hold
		for _, s := range steps {
			got := h.next(epoch.Add(time.Duration(s.at)*time.Second), window, need{now: s.now, then: s.then, max: 100})
			assert.Equal(t, s.want, got, "%s: at %d s", name, s.at)
		}
	}
}

// A new leader takes the size that it finds to be needed, for as long as if it had seen so.
func TestAssumedSizeIsHeld(t *testing.T) {
	var h hold
	at := time.Now()
	n := need{now: 8, then: 9, max: 100}
	h.assume(at, 6, n)
	assert.Equal(t, 6, h.next(at, time.Minute, n))
	assert.Equal(t, 6, h.next(at.Add(time.Minute), time.Minute, n))
	assert.Equal(t, 1, h.next(at.Add(61*time.Second), time.Minute, n))
}

func TestHeldSizeStaysWithinTheMaximum(t *testing.T) {
	var h hold
	at := time.Now()
	assert.Equal(t, 6, h.next(at, time.Minute, need{now: 8, then: 14, max: 12}))
	assert.Equal(t, 3, h.next(at.Add(time.Second), time.Minute, need{now: 8, then: 8, max: 3}), "the user wants less")
}

// TestHoldAgainstEverything compares sliding maxima with those over all that there was, and checks what a size must be.
func TestHoldAgainstEverything(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	const window = 30 * time.Second
	for range 200 {
		var h hold
		type seen struct {
			at time.Time
			need
		}
		var all []seen
		at := time.Now()
		for range 100 {
			at = at.Add(time.Duration(r.IntN(8000)) * time.Millisecond)
			n := need{now: r.IntN(10), then: r.IntN(20), min: r.IntN(3), max: r.IntN(15)}
			all = append(all, seen{at, n})
			size, total := 0, math.MinInt
			for _, x := range all {
				if at.Sub(x.at) <= window {
					size, total = max(size, x.size()), max(total, x.now+x.size())
				}
			}
			got := h.next(at, window, n)
			assert.Equal(t, min(size, total-n.now, n.max), got, "seed %d", seed)
			assert.GreaterOrEqual(t, got, n.size(), "seed %d: no less than is needed", seed)
			assert.GreaterOrEqual(t, got, 0)
		}
		assert.LessOrEqual(t, len(h.sizes.kept), 20, "it keeps decreasing values alone")
	}
}

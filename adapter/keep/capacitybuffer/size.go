package capacitybuffer

import (
	"math"
	"time"
)

// need holds the numbers that decide the size of a buffer, in pods.
type need struct {
	now  int // existing pods, or the pods that the forecast requests at once if these are more
	then int // pods that will be needed when a node that is ordered now has started
	min  int // of spare pods, whatever the forecast
	max  int // of spare pods: room for more would never be used, or is not wanted
}

// size returns the number of spare pods with which no pod that comes before a node has started waits for that node.
func (n need) size() int { return min(max(n.then-n.now, n.min, 0), n.limit()) }

func (n need) limit() int { return max(n.max, 0) }

// limitOf returns the most spare pods that bounds allow: those of the buffer, and those of the target, which has now
// pods.
func limitOf(buffer, target *int32, now int) int {
	most := math.MaxInt32
	if buffer != nil {
		most = int(*buffer)
	}
	if target != nil {
		most = min(most, int(*target)-now)
	}
	return max(most, 0)
}

// hold keeps a buffer from shrinking until what it was needed for has not been needed for a while: a node that is
// released costs its startup time again. Spare pods that have become pods of the target are not held: their room is
// taken, and the autoscaler would order it a second time. So both are held, the size and the sum of size and pods:
//
//	now 8, then 14: 6 spare, 14 in all
//	now 10, then 12: 2 would do; 6 are held as spare, 14 in all: 4
//	now 14, then 14: 0, as 14 in all are there
type hold struct{ sizes, totals slidingMax }

// next returns the size at a time, given the need.
func (h *hold) next(at time.Time, window time.Duration, n need) int {
	size := n.size()
	held := min(h.sizes.next(at, window, size), h.totals.next(at, window, n.now+size)-n.now)
	return min(held, n.limit())
}

// assume takes a size to be needed now: that of a buffer which an earlier leader has left.
func (h *hold) assume(at time.Time, size int, n need) {
	h.sizes.next(at, math.MaxInt64, size)
	h.totals.next(at, math.MaxInt64, n.now+size)
}

// slidingMax is the largest of the newest values. It keeps the values that may become the largest: each is smaller than
// the value before it.
type slidingMax struct{ kept []timed }

type timed struct {
	at    time.Time
	value int
}

// next adds a value and returns the largest of the window that ends with it.
func (m *slidingMax) next(at time.Time, window time.Duration, value int) int {
	for len(m.kept) > 0 && m.kept[len(m.kept)-1].value <= value {
		m.kept = m.kept[:len(m.kept)-1]
	}
	m.kept = append(m.kept, timed{at, value})
	first := 0
	for at.Sub(m.kept[first].at) > window {
		first++
	}
	if first > 0 {
		m.kept = append(m.kept[:0], m.kept[first:]...)
	}
	return m.kept[0].value
}

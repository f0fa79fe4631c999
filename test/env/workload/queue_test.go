package workload

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

func ended(j *job) bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

func TestQueueServesOneAfterAnother(t *testing.T) {
	var q queue
	first := q.arrive(0, 20*ms)
	second := q.arrive(5*ms, 30*ms)
	third := q.arrive(45*ms, 10*ms)
	assert.Equal(t, 2, q.length(), "the first has ended by the third's arrival")

	assert.Equal(t, 20*ms, first.finish)
	assert.Equal(t, 50*ms, second.finish)
	q.advance(49 * ms)
	assert.False(t, ended(second))
	q.advance(50 * ms)
	assert.True(t, ended(second))
	assert.Equal(t, 60*ms, third.finish)
	q.advance(time.Second)
	assert.True(t, ended(third))
	assert.Equal(t, 0, q.length())
	assert.EqualValues(t, 3, q.served)
}

func TestQueueIsNotDelayedByLateTimers(t *testing.T) {
	var q queue
	var last *job
	for range 100 {
		last = q.arrive(0, 10*ms)
	}
	q.advance(10 * time.Second) // the first move after the arrivals, nine seconds after the last end
	assert.Equal(t, time.Second, last.finish)
}

func TestQueueJobsThatLeaveUseNoService(t *testing.T) {
	var q queue
	first, second, third := q.arrive(0, 20*ms), q.arrive(0, 500*ms), q.arrive(0, 20*ms)
	assert.False(t, q.abandon(10*ms, first), "in service: worked off")
	assert.True(t, q.abandon(15*ms, second))
	assert.False(t, q.abandon(15*ms, second), "has left already")
	q.advance(20 * ms)
	assert.True(t, ended(first))
	assert.Equal(t, 40*ms, third.finish)
	q.advance(time.Second)
	assert.EqualValues(t, 2, q.served)
	assert.Equal(t, 40*ms, q.busy.total)
	assert.False(t, ended(second))
}

func TestBusyTime(t *testing.T) {
	var q queue
	q.arrive(100*ms, 200*ms) // busy 100..300
	q.arrive(150*ms, 100*ms) // busy 300..400
	q.arrive(900*ms, 300*ms) // busy 900..1200

	assert.Equal(t, 400*ms, q.busy.between(0, 1000*ms))
	assert.Equal(t, 250*ms, q.busy.between(150*ms, 400*ms))
	assert.Equal(t, 400*ms, q.busy.until(1000*ms), "what lies ahead does not count")
	assert.Equal(t, 600*ms, q.busy.until(1200*ms))
	q.advance(1350 * ms)
	assert.Equal(t, 350*ms, q.busy.between(350*ms, 1350*ms))
	q.advance(5 * time.Second)
	assert.Empty(t, q.busy.spans)
	assert.Equal(t, 600*ms, q.busy.until(5*time.Second))
}

// TestQueueAgreesWithRecurrence compares random runs, clients that leave included, with the
// textbook recurrence: service starts at the later of arrival and the end before, unless the client
// has left by then.
func TestQueueAgreesWithRecurrence(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		requests := randomRequests(random, 300)
		want := recurrence(requests)

		var q queue
		for _, e := range eventsOf(requests) {
			if e.leaves {
				e.request.left = q.abandon(e.at, e.request.job)
			} else {
				e.request.job = q.arrive(e.at, e.request.service)
			}
			assert.Equal(t, want.between(e.at-utilizationWindow, e.at), q.busy.between(e.at-utilizationWindow, e.at))
			assert.Equal(t, want.between(0, e.at), q.busy.until(e.at))
		}
		q.advance(time.Hour)
		abandoned := 0
		for i, r := range requests {
			require.Equal(t, want.left[i], r.left, "seed %d request %d", seed, i)
			require.Equal(t, want.finish[i], r.job.finish, "seed %d request %d", seed, i)
			if r.left {
				abandoned++
			}
		}
		assert.NotZero(t, abandoned, "seed %d tests nothing of leaving", seed)
		assert.EqualValues(t, len(requests)-abandoned, q.served)
	}
}

type request struct {
	arrival, service, leave time.Duration
	job                     *job
	left                    bool
}

func randomRequests(random *rand.Rand, count int) []*request {
	var requests []*request
	at := time.Duration(0)
	for range count {
		at += 1 + time.Duration(random.Int64N(int64(20*ms)))
		requests = append(requests, &request{
			arrival: at,
			service: 1 + time.Duration(random.Int64N(int64(22*ms))),
			leave:   at + time.Duration(random.Int64N(int64(200*ms))),
		})
	}
	return requests
}

// outcome is, by the recurrence, when each request ends, or 0 where it left.
type outcome struct {
	finish []time.Duration
	left   []bool
	spans  []span
}

func recurrence(requests []*request) outcome {
	var o outcome
	free := time.Duration(0)
	for _, r := range requests {
		start := max(r.arrival, free)
		left := r.leave < start
		finish := time.Duration(0)
		if !left {
			finish = start + r.service
			free = finish
			o.spans = append(o.spans, span{start, finish})
		}
		o.finish, o.left = append(o.finish, finish), append(o.left, left)
	}
	return o
}

func (o outcome) between(from, to time.Duration) time.Duration {
	var sum time.Duration
	for _, s := range o.spans {
		if overlap := min(s.to, to) - max(s.from, from); overlap > 0 {
			sum += overlap
		}
	}
	return sum
}

type event struct {
	at      time.Duration
	leaves  bool
	request *request
}

func eventsOf(requests []*request) []event {
	var events []event
	for _, r := range requests {
		events = append(events, event{r.arrival, false, r}, event{r.leave, true, r})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return events
}

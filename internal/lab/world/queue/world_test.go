package queue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/world/queue"
	"github.com/foresail/foresail/internal/lab/world/workload"
)

// steps is a scaler that wants the n-th of some numbers of pods from n times 15 s on.
type steps struct {
	at      int64
	targets []int
}

func (s *steps) Next() int64 { return s.at }

func (s *steps) Decide(*lab.View) int {
	n := s.targets[0]
	s.at += 15_000
	if len(s.targets) > 1 {
		s.targets = s.targets[1:]
	}
	return n
}

func config(t testing.TB, profile string, seed uint64) (queue.Config, lab.Span) {
	p, err := workload.New(profile, seed)
	require.NoError(t, err)
	return queue.Config{Load: p.Load, Seed: seed, Min: 4, Max: 20, Warm: 4, Model: queue.Defaults()}, p.Span
}

func TestEveryArrivalHasAnOutcome(t *testing.T) {
	for profile, arrive := range map[string]float64{"ramp": 134_400, "spike": 100_000} {
		for _, targets := range [][]int{{4}, {4, 4, 4, 8, 5, 14, 3, 20, 4, 9}} {
			c, span := config(t, profile, 1)
			w := queue.New(c)
			record := lab.Run(w, &steps{targets: targets}, span, nil)
			r := w.Requests(0)
			assert.Equal(t, r.Sent, r.Succeeded+r.TimedOut+r.Rejected)
			got := w.Requests(record.From)
			assert.InDelta(t, arrive, got.Sent+got.Dropped, 2)
			assert.Positive(t, got.Succeeded)
			end := record.From + span.Length.Milliseconds()
			a, b := w.Between(record.From, record.From+20_000), w.Between(record.From+20_000, end)
			assert.Equal(t, got.Sent, a.Sent+b.Sent)
			assert.Equal(t, got.Dropped, a.Dropped+b.Dropped)
			assert.InDelta(t, got.Latency.Mean()*float64(got.Sent),
				a.Latency.Mean()*float64(a.Sent)+b.Latency.Mean()*float64(b.Sent), 1)
			median := int(got.Latency.Quantile(0.5))
			assert.GreaterOrEqual(t, got.Latency.Share(median), 0.5)
			assert.Less(t, got.Latency.Share(median-1), 0.5)
			assert.Equal(t, 1.0, got.Latency.Share(1_000_000))
			assert.Zero(t, got.Latency.Share(-1))
			assert.Less(t, got.Answers.Share(200), 1.0, "some are slow")
			assert.Equal(t, 1.0, got.Answers.Share(int(c.Model.Timeout)), "but none slower than clients wait")
			if len(targets) == 1 { // more than four pods can do
				assert.Positive(t, got.Dropped)
				assert.Positive(t, got.TimedOut)
			}
		}
	}
}

// level is a load that does not change.
type level float64

func (l level) Rate(int64) float64 { return float64(l) }

// one is a model of one pod after another that each request is a single piece for, all alike.
func one() queue.Model {
	m := queue.Defaults()
	m.Routes = nil
	m.ChunksMin, m.ChunksMax = 1, 1
	m.WaitsMin, m.WaitsMax = 0, 0
	m.Jump, m.SpeedSigma, m.FailShare = 0, 0, 0
	m.StartupSpread, m.Notice, m.Refresh = 0, 0, 0
	return m
}

func TestWaitingTimesFollowQueueingTheory(t *testing.T) {
	for _, c := range []struct {
		name   string
		routes []queue.Route
		square float64 // mean of the square of a service time over the square of its mean
	}{
		{"M/D/1", nil, 1},
		{"M/G/1", []queue.Route{{Share: 3, Cost: 1}, {Share: 1, Cost: 5}}, 7.0 / 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := one()
			m.Routes = c.routes
			m.Poisson = true
			const busy, seconds = 0.7, 4000
			w := queue.New(queue.Config{Load: level(busy / m.Service * 1000), Seed: 1, Min: 1, Max: 1, Warm: 1,
				Model: m})
			w.Advance(seconds * 1000)
			pod := w.View().Pods[0]
			assert.InEpsilon(t, busy, pod.Busy.Mean(0, seconds*1000), 0.01)
			assert.InEpsilon(t, busy/m.Service*1000, pod.Requests.Mean(0, seconds*1000), 0.01)
			wait := busy * m.Service * c.square / 2 / (1 - busy) // Pollaczek and Khinchine
			r := w.Requests(0)
			assert.InEpsilon(t, m.Service+wait, r.Latency.Mean(), 0.03)
		})
	}
}

func TestRunsAreAFunctionOfTheSeed(t *testing.T) {
	run := func(seed uint64) (*lab.Record, queue.Requests) {
		c, span := config(t, "spike", seed)
		w := queue.New(c)
		record := lab.Run(w, &steps{targets: []int{4, 4, 4, 8, 5, 14, 3, 20, 4, 9}}, span, nil)
		return record, w.Requests(record.From)
	}
	record, requests := run(1)
	again, requestsAgain := run(1)
	assert.Equal(t, record, again)
	assert.Equal(t, requests, requestsAgain)
	_, other := run(2)
	assert.NotEqual(t, requests.Latency.Mean(), other.Latency.Mean())
}

func TestNewPodsStartSlowly(t *testing.T) {
	m := one()
	w := queue.New(queue.Config{Load: level(100), Seed: 1, Min: 1, Max: 2, Warm: 1, Model: m})
	w.SetTarget(2)
	w.Advance(60_000)
	pod := w.View().Pods[1]
	require.Equal(t, int64(m.Startup), pod.Ready)
	share := func(from, to int64) float64 { return pod.Requests.Mean(pod.Ready+from*1000, pod.Ready+to*1000) / 100 }
	assert.Zero(t, share(-1, 0))
	assert.InDelta(t, 0.1/1.1, share(0, 3), 0.01, "10% of a full weight at first")
	assert.InDelta(t, 0.5/1.5, share(14, 16), 0.01, "half of it after half of the time")
	assert.InDelta(t, 0.9/1.9, share(26, 28), 0.01)
	assert.InDelta(t, 0.5, share(30, 41), 0.01, "all of it after all")
}

func TestPodsGetNothingBeforeTheProxyKnowsThem(t *testing.T) {
	m := queue.Defaults()
	late := 0.0
	for seed := range uint64(200) {
		w := queue.New(queue.Config{Load: level(40), Seed: seed, Min: 4, Max: 5, Warm: 4, Model: m})
		w.SetTarget(5)
		known := int64(0)
		for at := int64(1000); known == 0; at += 1000 {
			w.Advance(at)
			if w.Second().Ready == 5 {
				known = at
			}
		}
		pod := w.View().Pods[4]
		assert.InDelta(t, m.Startup, pod.Ready, m.StartupSpread)
		require.LessOrEqual(t, pod.Ready, known)
		assert.Zero(t, pod.Requests.Mean(0, known-1000))
		require.LessOrEqual(t, known-1000, pod.Ready+int64(m.Notice+m.Refresh))
		late += float64(known-500-pod.Ready) / 200
	}
	assert.InDelta(t, (m.Notice+m.Refresh)/2, late, 300)
}

func TestRemovesUnreadyPodsFirst(t *testing.T) {
	w := queue.New(queue.Config{Load: level(300), Seed: 1, Min: 1, Max: 9, Warm: 3, Model: queue.Defaults()})
	w.Advance(1000)
	w.SetTarget(5)
	w.Advance(40_000)
	w.SetTarget(7)
	w.Advance(41_000)
	w.SetTarget(4)
	ended := func() (ids []string) {
		for _, p := range w.View().Pods {
			if p.Ended != lab.Never {
				ids = append(ids, p.ID)
			}
		}
		return ids
	}
	assert.Equal(t, []string{"4", "5", "6"}, ended())
	assert.Equal(t, lab.Never, w.View().Pods[5].Ready)
	w.Advance(60_000)
	assert.Equal(t, 4, w.Second().Pods)
	assert.Positive(t, w.View().Pods[4].Requests.Mean(40_000, 41_000))
	assert.Zero(t, w.View().Pods[4].Requests.Mean(41_000, 60_000))
	r := w.Requests(0)
	assert.Equal(t, r.Sent, r.Succeeded, "what they had begun they finish")

	w.SetTarget(0)
	assert.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6"}, ended())
	w.Advance(700_000)
	assert.Empty(t, w.View().Pods, "what ended long ago is out of view")
	assert.Positive(t, w.Requests(0).Rejected, "and what comes then finds nobody")
}

func TestClientsAreLimited(t *testing.T) {
	m := one()
	m.Users = 10
	w := queue.New(queue.Config{Load: level(1000), Seed: 1, Min: 1, Max: 1, Warm: 1, Model: m})
	w.Advance(60_000)
	r := w.Requests(0)
	assert.InDelta(t, 60_000, r.Sent+r.Dropped, 1)
	assert.InDelta(t, 60*125, r.Sent, 15, "as many as the pod can do")
	assert.Equal(t, r.Sent, r.Succeeded)
	assert.InDelta(t, 80, r.Latency.Quantile(0.99), 2, "ten at a time, of 8 ms each")
}

// until is a load that ends at a time, in ms.
type until struct {
	level
	end int64
}

func (u until) Rate(t int64) float64 {
	if t >= u.end {
		return 0
	}
	return u.level.Rate(t)
}

func TestClientsGiveUpAndSomeOfTheirWorkIsDone(t *testing.T) {
	work := func(stillRuns float64) float64 {
		m := one()
		m.StillRuns, m.Users = stillRuns, 1_000_000
		w := queue.New(queue.Config{Load: until{level(250), 20_000}, Seed: 1, Min: 1, Max: 1, Warm: 1, Model: m})
		w.Advance(60_000)
		r := w.Requests(0)
		assert.InDelta(t, 5000, r.Sent, 3)
		assert.Equal(t, r.Sent, r.Succeeded+r.TimedOut)
		assert.InDelta(t, 2*m.Timeout/m.Service, r.Succeeded, 20, "those that came while the queue was short of 10 s")
		assert.Equal(t, m.Timeout, r.Latency.Quantile(1))
		return w.View().Pods[0].Busy.Mean(0, 60_000) * 60
	}
	none, some, all := work(0), work(0.6), work(1)
	assert.InDelta(t, 40, all, 0.1, "5,000 requests of 8 ms")
	assert.InDelta(t, 30, none, 0.1, "nothing is left to do when the last client has gone")
	assert.Greater(t, some, none+1)
	assert.Less(t, some, all-1)
}

func TestFullPodsFailSomeRequestsSoon(t *testing.T) {
	m := one()
	m.FailShare = 1
	w := queue.New(queue.Config{Load: level(250), Seed: 1, Min: 1, Max: 1, Warm: 1, Model: m})
	w.Advance(60_000)
	r := w.Requests(0)
	assert.Zero(t, r.TimedOut)
	assert.InDelta(t, 125*60, r.Succeeded, 400)
	assert.Equal(t, r.Sent, r.Succeeded+r.Rejected)
	assert.InDelta(t, 390*m.Service, r.Answers.Quantile(1), 10, "who gets in is behind all that are in")
}

package queue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab"
	"github.com/foresail/foresail/internal/lab/queue"
	"github.com/foresail/foresail/internal/lab/workload"
)

// steps is a scaler that wants the n-th of some numbers of pods from n times 15 s on.
type steps struct {
	at    int64
	wants []int
}

func (s *steps) Next() int64 { return s.at }

func (s *steps) Decide(*lab.View) int {
	n := s.wants[0]
	s.at += 15_000
	if len(s.wants) > 1 {
		s.wants = s.wants[1:]
	}
	return n
}

func config(t *testing.T, profile string, seed uint64) (queue.Config, lab.Span) {
	p, err := workload.New(profile, seed)
	require.NoError(t, err)
	return queue.Config{Load: p.Load, Seed: seed, Min: 4, Max: 20, Warm: 4, Model: queue.Defaults()}, p.Span
}

func TestEachArrivalIsAnsweredFailedOrDropped(t *testing.T) {
	for _, profile := range []string{"ramp", "spike"} {
		for _, wants := range [][]int{{4}, {4, 4, 4, 8, 5, 14, 3, 20, 4, 9}} {
			c, span := config(t, profile, 1)
			w := queue.New(c)
			record := lab.Run(w, &steps{wants: wants}, span, nil)
			r := w.Requests(0)
			arrived := 0.0
			for _, s := range record.Seconds {
				arrived += s.Rate
			}
			assert.Equal(t, r.Sent, r.Succeeded+r.TimedOut+r.Refused)
			got := w.Requests(record.From)
			assert.InDelta(t, arrived, got.Sent+got.Dropped, 0)
			assert.Positive(t, got.Succeeded)
			end := record.From + span.Length.Milliseconds()
			a, b := w.Between(record.From, record.From+20_000), w.Between(record.From+20_000, end)
			assert.Equal(t, got.Sent, a.Sent+b.Sent)
			assert.Equal(t, got.Dropped, a.Dropped+b.Dropped)
			assert.InDelta(t, got.Latency.Mean()*float64(got.Sent), a.Latency.Mean()*float64(a.Sent)+b.Latency.Mean()*float64(b.Sent), 1)
			median := int(got.Latency.Quantile(0.5))
			assert.GreaterOrEqual(t, got.Latency.Share(median), 0.5)
			assert.Less(t, got.Latency.Share(median-1), 0.5)
			assert.Equal(t, 1.0, got.Latency.Share(1_000_000))
			assert.Zero(t, got.Latency.Share(-1))
			assert.Less(t, got.Answers.Share(200), 1.0, "some are slow")
			assert.Equal(t, 1.0, got.Answers.Share(int(c.Model.Timeout)), "but none slower than clients wait")
			if len(wants) == 1 { // more than four pods can do
				assert.Positive(t, got.Dropped)
				assert.Positive(t, got.TimedOut)
			}
		}
	}
}

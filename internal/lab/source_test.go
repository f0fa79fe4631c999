package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/pipeline"
)

func times(samples []pipeline.Sample) []int64 {
	out := make([]int64, 0, len(samples))
	for _, s := range samples {
		out = append(out, s.T)
	}
	return out
}

func TestReadingsAreSeenLaterOrInBatches(t *testing.T) {
	pod := &Pod{Ready: 0, Ended: Never}
	read := func(s Source, from, now int64) []int64 { return times(s.Read(pod, &pod.Busy, from, now, nil)) }

	every := Source{Window: time.Second, Period: time.Second}
	assert.Equal(t, []int64{1000, 2000, 3000}, read(every, 0, 3999))
	assert.Equal(t, []int64{3000}, read(every, 2000, 3000), "a reading of the time asked from is not read again")

	lagging := Source{Window: time.Second, Period: time.Second, Lag: 1500 * time.Millisecond}
	assert.Equal(t, []int64{1000}, read(lagging, 0, 2500))

	batches := Source{Window: time.Second, Period: time.Second, Batch: 5 * time.Second, BatchPhase: 2 * time.Second}
	assert.Equal(t, []int64{1000, 2000}, read(batches, 0, 6999), "batches go out at 2 s, 7 s, 12 s")
	assert.Equal(t, []int64{3000, 4000, 5000, 6000, 7000}, read(batches, 2000, 7000))

	scrapes := Source{Window: 5 * time.Second, Period: 5 * time.Second, Phase: 4 * time.Second}
	assert.Equal(t, []int64{4000, 9000}, read(scrapes, 0, 10_000), "the first scrape comes before a whole period")
}

func TestAPodIsReadWhileItIsReady(t *testing.T) {
	s := EverySecond()
	never := &Pod{Ready: Never, Ended: 5000}
	assert.Empty(t, s.Read(never, &never.Busy, 0, 60_000, nil))

	pod := &Pod{Ready: 2500, Ended: 5000}
	pod.Busy.AddSpan(2500, 5000)
	samples := s.Read(pod, &pod.Busy, 0, 60_000, nil)
	assert.Equal(t, []int64{3000, 4000}, times(samples))
	for _, x := range samples[1:] {
		assert.InDelta(t, 1, x.V, 1e-12)
	}
}

func TestMeterMeansSurviveForgetting(t *testing.T) {
	var m Meter
	for s := range int64(100) {
		m.AddSpan(s*1000, s*1000+10*s)
	}
	before := m.Mean(60_000, 90_000)
	assert.InDelta(t, 0.745, before, 1e-12, "the mean of 0.60 to 0.89")
	m.Forget(55_000)
	assert.InDelta(t, before, m.Mean(60_000, 90_000), 1e-12)
	m.Add(100_000, 1)
	assert.InDelta(t, 1, m.Mean(100_000, 101_000), 1e-12)
	assert.Zero(t, m.Mean(150_000, 160_000))
	m.Forget(200_000)
	m.Add(200_500, 0.5)
	assert.InDelta(t, 0.5, m.Mean(200_000, 201_000), 1e-12)
}

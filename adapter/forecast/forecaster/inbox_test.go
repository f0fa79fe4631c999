package forecaster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// TestReceiversAppend gives the same to two feeds, to one of them by receivers, while pods come and
// go and samples are refused.
func TestReceiversAppend(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			at := time.UnixMilli(1_800_000_000_000)
			pods := &fleet{}
			var feeds [2]*Feed
			for i := range feeds {
				feed, err := newFeed(key, config(), func() time.Time { return at })
				require.NoError(t, err)
				feed.group = &group{}
				feed.group.add(feed)
				feed.SetPods(pods)
				feed.SetReplicas(3)
				feeds[i] = feed
			}
			receivers := map[string]source.Receiver{}
			var w workspace
			kept := 0
			for range 400 {
				at = at.Add(time.Duration(random.IntN(700)) * time.Millisecond)
				id := fmt.Sprint("pod-", random.IntN(60))
				switch what := random.IntN(20); {
				case what == 0 && len(pods.all) < 60:
					pods.start(at)
				case what == 1 && len(pods.all) > 0:
					pods.all[random.IntN(len(pods.all))].End = at
				case what == 2:
					for _, f := range feeds {
						f.Fail(id, errors.New("refused"))
					}
				case what < 7:
					for _, f := range feeds {
						f.run(at, &w)
					}
				case what == 7 && random.IntN(4) == 0:
					for _, f := range feeds {
						f.stop(errors.New("above the budget"), at)
					}
				default:
					samples := make([]pipeline.Sample, 1+random.IntN(2))
					for i := range samples {
						samples[i] = pipeline.Sample{T: at.UnixMilli() - int64(random.IntN(
							2000)) + int64(random.IntN(2)*random.IntN(5000)), V: random.Float64()}
					}
					feeds[0].Append(id, samples...)
					if receivers[id] == nil {
						receivers[id] = feeds[1].Receiver(id)
					}
					receivers[id].Append(samples...)
				}
				require.Equal(t, feeds[0].predictor.readings.failing, feeds[1].predictor.readings.failing)
				require.Equal(t, len(feeds[0].predictor.readings.series), len(feeds[1].predictor.readings.series))
				for id, s := range feeds[0].predictor.readings.series {
					require.Equal(t, s.AppendTo(nil), feeds[1].predictor.readings.series[id].AppendTo(nil), id)
					kept++
				}
				require.Equal(t, feeds[0].published.Load().Err, feeds[1].published.Load().Err)
				for _, f := range feeds {
					requireNothingOfOthers(t, f)
				}
			}
			assert.NotZero(t, kept)
		})
	}
}

// requireNothingOfOthers requires that no samples are kept but those of the feed, once a forecast
// has looked at what has arrived.
func requireNothingOfOthers(t *testing.T, f *Feed) {
	t.Helper()
	for id, a := range f.inbox.arrivals {
		if a.series != nil && f.predictor.readings.inboxGeneration == f.predictor.readings.generation {
			require.Same(t, f.predictor.readings.series[id], a.series)
		}
	}
}

// Receivers are used while forecasts are made, and while a feed is refused.
func TestReceiversBesideForecasts(t *testing.T) {
	feed, err := newFeed(key, config(), time.Now)
	require.NoError(t, err)
	feed.group = &group{}
	pods := &fleet{}
	for range 4 {
		pods.start(time.Now().Add(-time.Hour))
	}
	feed.SetPods(pods)
	var senders sync.WaitGroup
	for i := range pods.all {
		r := feed.Receiver(pods.all[i].ID)
		senders.Go(func() {
			for range 2000 {
				r.Append(pipeline.Sample{T: time.Now().UnixMilli(), V: 1})
			}
		})
	}
	var w workspace
	for n := range 200 {
		if n%50 == 49 {
			feed.stop(errors.New("above the budget"), time.Now())
		}
		feed.run(time.Now(), &w)
	}
	senders.Wait()
	feed.run(time.Now(), &w)
	requireNothingOfOthers(t, feed)
}

// An inbox has entries of no more instances that have gone than there are, and a few.
func TestInboxDropsInstancesThatHaveGone(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	feed, err := newFeed(key, config(), func() time.Time { return at })
	require.NoError(t, err)
	feed.group = &group{}
	feed.SetPods(&fleet{})
	var w workspace
	for n := range 500 {
		id := fmt.Sprint("pod-", n)
		at = at.Add(time.Second)
		feed.Receiver(id).Append(pipeline.Sample{T: at.UnixMilli(), V: 1})
		feed.run(at, &w)
	}
	assert.LessOrEqual(t, len(feed.inbox.arrivals), 2+spareArrivals+1)
}

package prometheus

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

// discard is a sink that only counts.
type discard struct {
	b     *testing.B
	taken int
}

func (d *discard) Append(_ string, samples ...pipeline.Sample) { d.taken += len(samples) }
func (d *discard) Fail(instance string, err error)             { d.b.Error(instance, err) }
func (d *discard) SourceFailed(err error) {
	if err != nil {
		d.b.Error(err)
	}
}

// BenchmarkAnswer takes an answer with five samples of each pod, two of which are new, per operation: from its text to
// the sinks of so many PredictedMetrics, whose fleets share the pods.
func BenchmarkAnswer(b *testing.B) {
	const readings = 5
	for _, size := range []struct{ pods, subscriptions int }{{20, 1}, {1000, 1}, {1000, 50}} {
		pods, subscriptions := size.pods, size.subscriptions
		b.Run(fmt.Sprintf("pods=%d/subscriptions=%d", pods, subscriptions), func(b *testing.B) {
			base := time.Now().Add(-time.Hour).UnixMilli()
			round := int64(0)
			text := func() string {
				all := make([]fakeSeries, pods)
				for i := range all {
					x := pod(fmt.Sprint("checkout-7d4b9c6f5-", i)).label("instance",
						fmt.Sprintf("10.0.%d.%d:9090", i/250, i%250)).label("job", "kubernetes-pods")
					for j := range int64(readings) {
						x.samples = append(x.samples, pipeline.Sample{T: base + (2*round+j)*1000, V: 0.731})
					}
					all[i] = x
				}
				return matrix(all...)
			}
			transport := roundTrip(func(r *http.Request) (*http.Response, error) {
				b.StopTimer()
				round++
				body := text()
				b.StartTimer()
				return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: -1,
					Body: io.NopCloser(strings.NewReader(body))}, nil
			})
			s := newSource(Options{}.withDefaults(), transport)
			sinks := make([]discard, subscriptions)
			c := gauge()
			for i := range sinks {
				sinks[i].b = b
				var all []podtracker.Instance
				for j := i; j < pods; j += subscriptions {
					all = append(all, instance(fmt.Sprint("checkout-7d4b9c6f5-", j)))
				}
				require.NoError(b, s.Set(key(fmt.Sprint(i)), c, sourcetest.NewFleet(all...), &sinks[i]))
			}
			g := only(s.groups)
			require.NoError(b, g.ask(b.Context()))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, g.ask(b.Context()))
			}
			taken := 0
			for i := range sinks {
				taken += sinks[i].taken
			}
			require.Equal(b, pods*(readings+2*(int(round)-1)), taken)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pods*readings), "ns/sample")
		})
	}
}

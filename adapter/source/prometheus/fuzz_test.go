package prometheus

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// strict is a sink that fails a test which gives it what is no sample of a pod of its fleet.
type strict struct{ t *testing.T }

func (s strict) Append(instance string, samples ...pipeline.Sample) {
	require.Contains(s.t, []string{"uid-a", "uid-b"}, instance)
	for i, x := range samples {
		require.False(s.t, math.IsNaN(x.V) || math.IsInf(x.V, 0), "%v", x)
		require.True(s.t, x.T >= 0 && x.T <= latestTime, "%v", x)
		require.True(s.t, i == 0 || x.T > samples[i-1].T)
	}
}

func (s strict) Fail(instance string, err error) {
	require.Contains(s.t, []string{"uid-a", "uid-b"}, instance)
	require.Error(s.t, err)
}

func (strict) SourceFailed(error) {}

// Whatever a server answers: no panic, and no sample that is none.
func FuzzAnswer(f *testing.F) {
	f.Add(matrix(pod("a", 1, 2, math.NaN()), pod("b", 3, math.Inf(1))))
	f.Add(matrix(pod("a", 1, 2), pod("a", 3, 4).label("job", "x"), pod("", 3).label("pod", ""),
		pod("z", 1).label("namespace", "")))
	f.Add(
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[[1,"1"],[1,"2"],[0.5,"3"]]}]}}`)
	f.Add(
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"histograms":[[1,{"count":"1","sum":"2","buckets":[[0,"1","2","1"]]}]]}]}}`)
	f.Add(`{"status":"success","data":{"resultType":"matrix","result":[null,{},{"metric":null,"values":null}]}}`)
	f.Add(`{"status":"success","data":{"resultType":"matrix","result":null},"warnings":["x"]}`)
	f.Add(`{"status":"error","errorType":"bad_data","error":"x"}`)
	f.Fuzz(func(t *testing.T, body string) {
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: -1,
				Body: io.NopCloser(strings.NewReader(body))}, nil
		})
		for _, as := range []source.Type{source.Gauge, source.Counter} {
			s := newSource(Options{MaxSeries: 100, MaxBytes: 1 << 16}.withDefaults(), transport)
			c := gauge()
			c.Type = as
			require.NoError(t, s.Set(key("pm"), c, fleetOf("a", "b"), strict{t}))
			g := only(s.groups)
			for range 2 {
				_ = g.ask(t.Context())
			}
		}
	})
}

// Whatever times readings have, each is taken at most once while none is forgotten.
func FuzzTrack(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0, 2, 3, 4, 0, 3, 4, 5})
	f.Add([]byte{100, 101, 0, 5, 6, 0, 100})
	f.Fuzz(func(t *testing.T, answers []byte) {
		k, rates := &track{}, &track{}
		seen, newest := map[int64]bool{}, int64(0)
		for part := range strings.SplitSeq(string(answers), "\x00") {
			times := map[int64]bool{}
			for _, b := range []byte(part) {
				times[int64(b)] = true
			}
			var readings []pipeline.Sample
			for at := range int64(256) {
				if times[at] {
					readings = append(readings, pipeline.Sample{T: at, V: float64(at)})
				}
			}
			if len(readings) == 0 {
				continue
			}
			if len(k.times) > 0 && readings[len(readings)-1].T < k.times[0] {
				seen, newest = map[int64]bool{}, 0 // the clock has been set back
			}
			samples, _ := k.take(readings, nil, 10, 256, source.Gauge)
			for _, x := range samples {
				require.False(t, seen[x.T] && x.T > newest, "%v is given twice", x)
				require.GreaterOrEqual(t, x.T, int64(10))
				seen[x.T], newest = true, max(newest, x.T)
			}
			samples, _ = rates.take(readings, nil, 10, 256, source.Counter)
			for _, x := range samples {
				require.InDelta(t, 1000, x.V, 1e-9)
			}
		}
	})
}

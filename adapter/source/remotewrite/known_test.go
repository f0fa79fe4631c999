package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/golang/snappy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/foresail/foresail/adapter/source/sourcetest"
)

// TestKnownSeriesAreTakenAsOthers pushes the same to two receivers, in a version with known series and in one without, while subscriptions and
// pods come and go.
func TestKnownSeriesAreTakenAsOthers(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { takenAlike(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func takenAlike(t *testing.T, random *rand.Rand) {
	receivers := []*receiver{newReceiver(), newReceiver()}
	sinks := [][]*sourcetest.Recorder{nil, nil}
	var codes [2][]int
	configs := []Config{gauge(), counter(), matching(gauge(), "job", "a"), {Metric: "load", Type: gauge().Type, PodLabel: "exported_pod"}}
	known := 0
	for step := range 60 {
		name := key(fmt.Sprint("m", random.IntN(3)))
		config := configs[random.IntN(len(configs))]
		fleet := slices.Repeat([]string{"web-0", "web-1", "web-2"}, 1)[random.IntN(3):]
		what := random.IntN(10)
		var all []pushed
		for range 1 + random.IntN(6) {
			label := []string{"pod", "exported_pod"}[random.IntN(8)/7]
			all = append(all, push(fmt.Sprintf("load{job=%c,namespace=shop,%s=web-%d}", 'a'+rune(random.IntN(8)/7), label, random.IntN(4)), at(float64(step), float64(step))))
		}
		for i, r := range receivers {
			switch {
			case what == 0 || step == 0:
				sinks[i] = append(sinks[i], sourcetest.NewRecorder())
				require.NoError(t, r.Set(name, config, newFleet("shop", fleet...), sinks[i][len(sinks[i])-1]))
			case what == 1:
				r.Remove(name)
			case what == 2:
				if u := r.subscriptions[name]; u != nil {
					u.fleet.(*sourcetest.Fleet).Set(newFleet("shop", fleet...).Instances(r.options.Now())...)
				}
			default:
				r.at(float64(step) + 1)
				codes[i] = append(codes[i], r.push(encodings[i], all...).Code)
			}
		}
		requireKnownBelongs(t, receivers[0])
		known = max(known, len(receivers[0].index.known))
		require.Empty(t, receivers[1].index.known)
	}
	require.NotZero(t, known)
	assert.Equal(t, codes[1], codes[0])
	for i := range sinks[0] {
		for n := range 4 {
			id := fmt.Sprint("uid-web-", n)
			assert.Equal(t, sinks[1][i].Samples(id), sinks[0][i].Samples(id))
			assert.Equal(t, sinks[1][i].Failing(id), sinks[0][i].Failing(id))
		}
	}
	for _, r := range resultNames {
		assert.Equal(t, receivers[1].count(t, r), receivers[0].count(t, r), r)
	}
	for name := range receivers[0].subscriptions {
		receivers[0].Remove(name)
	}
	assert.Empty(t, receivers[0].index.known)
}

// requireKnownBelongs requires that series are known of pods alone that some subscription follows, one each.
func requireKnownBelongs(t *testing.T, r *receiver) {
	t.Helper()
	owned := 0
	for _, g := range r.index.groups {
		for _, k := range g.keyed {
			for _, tenant := range k.tenants {
				for _, of := range tenant.takers {
					if of.known != nil {
						owned++
						require.Same(t, of.known, r.index.known[of.known.labels])
						require.Equal(t, of.members, of.known.members)
						require.Len(t, g.keyed, 1)
					}
				}
			}
		}
	}
	require.Len(t, r.index.known, owned)
}

// TestKnownSeriesWithMore pushes a known series with what no receiver reads beside its samples, and with a label behind them.
func TestKnownSeriesWithMore(t *testing.T) {
	r, sink := subscribed(t, gauge())
	r.at(10)
	require.Equal(t, http.StatusNoContent, r.push(encodings[0], push(seriesA, at(0, 1))).Code)
	require.Len(t, r.index.known, 1)
	request := encodings[0].encode(push(seriesA, at(1, 2)))
	series, n := protowire.ConsumeBytes(request[1:])
	require.Equal(t, len(request)-1, n)
	with := func(number protowire.Number, message []byte) int {
		longer := protowire.AppendBytes(protowire.AppendTag(slices.Clone(series), number, protowire.BytesType), message)
		body := protowire.AppendBytes(protowire.AppendTag(nil, v1Series, protowire.BytesType), longer)
		return do(r.handler, post(encodings[0].contentType, snappy.Encode(nil, body))).Code
	}
	assert.Equal(t, http.StatusNoContent, with(v1Exemplars, nil))
	assert.Equal(t, []float64{1, 2}, sink.Values("uid-web-0"))
	assert.Equal(t, http.StatusBadRequest, with(v1Samples, []byte{0xff}), "no sample")
	assert.Equal(t, []float64{1, 2}, sink.Values("uid-web-0"))
	label := func(name, value string) []byte {
		b := protowire.AppendString(protowire.AppendTag(nil, v1LabelName, protowire.BytesType), name)
		return protowire.AppendString(protowire.AppendTag(b, v1LabelValue, protowire.BytesType), value)
	}
	assert.Equal(t, http.StatusBadRequest, with(v1Labels, label("zone", "a")), "a second series of the pod")
	assert.Contains(t, sink.Failing("uid-web-0"), `another with zone="a"`)
	assert.Equal(t, []float64{1, 2}, sink.Values("uid-web-0"))
}

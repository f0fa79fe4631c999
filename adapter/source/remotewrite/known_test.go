package remotewrite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/source/sourcetest"
)

// TestKnownSeriesAreTakenAsOthers pushes the same to two receivers, in a version with known series
// and in one without, while subscriptions and pods come and go.
func TestKnownSeriesAreTakenAsOthers(t *testing.T) {
	known := 0
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { known += takenAlike(t, rand.New(rand.NewPCG(seed, 1))) })
	}
	assert.Greater(t, known, 200)
}

// takenAlike returns how many series were known at a time, at most.
func takenAlike(t *testing.T, random *rand.Rand) (known int) {
	receivers := []*receiver{newReceiver(), newReceiver()}
	sinks := [][]*sourcetest.Recorder{nil, nil}
	var codes [2][]int
	configs := []Config{gauge(), counter(), matching(gauge(), "job", "a"),
		{Metric: "load", Type: gauge().Type, PodLabel: "exported_pod"}, {Metric: "load", Type: gauge().Type,
			Whole: true}}
	for step := range 60 {
		name := key(fmt.Sprint("m", random.IntN(3)))
		config := configs[random.IntN(len(configs))]
		fleet := slices.Repeat([]string{"web-0", "web-1", "web-2"}, 1)[random.IntN(3):]
		what := random.IntN(10)
		var all []pushed
		for range 1 + random.IntN(6) {
			label := []string{"pod", "exported_pod"}[random.IntN(8)/7]
			all = append(all, push(fmt.Sprintf("load{job=%c,namespace=shop,%s=web-%d}", 'a'+rune(random.IntN(8)/7),
				label,
				random.IntN(4)), at(float64(step), float64(step))))
		}
		for i, r := range receivers {
			switch {
			case what == 0 || step == 0:
				sinks[i] = append(sinks[i], sourcetest.NewRecorder())
				r.Set(name, config, newFleet("shop", fleet...), sinks[i][len(sinks[i])-1])
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
		known = max(known, len(receivers[0].index.cached))
		require.Empty(t, receivers[1].index.cached)
	}
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
	assert.Empty(t, receivers[0].index.cached)
	return known
}

// requireKnownBelongs requires that series are known of pods alone that some subscription follows, one each.
func requireKnownBelongs(t *testing.T, r *receiver) {
	t.Helper()
	owned := 0
	for _, g := range r.index.groups {
		for _, tenant := range g.tenants {
			for _, k := range tenant.metrics {
				for _, of := range k.receivers {
					if of.cached != nil {
						owned++
						require.Same(t, of.cached, r.index.cached[of.cached.labels])
						require.Equal(t, of.members, of.cached.members)
						require.LessOrEqual(t, len(of.cached.labels), 4<<10)
					}
				}
			}
		}
	}
	require.Len(t, r.index.cached, owned)
}

// TestKnownSeriesWithMore pushes a known series with fields that no receiver reads after its
// samples, and with a label behind them.
func TestKnownSeriesWithMore(t *testing.T) {
	r, sink := subscribed(gauge())
	r.at(10)
	require.Equal(t, http.StatusNoContent, r.push(encodings[0], push(seriesA, at(0, 1))).Code)
	require.Len(t, r.index.cached, 1)
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
	huge := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(1e9))
	assert.Equal(t, http.StatusBadRequest, with(v1Samples, append(huge, 0xff)), "no sample")
	assert.Equal(t, []float64{1, 2}, sink.Values("uid-web-0"))
	assert.Equal(t, http.StatusNoContent, r.push(encodings[0], push(seriesA, at(2, 0))).Code)
	assert.Equal(t, []float64{1, 2, 0}, sink.Values("uid-web-0"),
		"nothing is left of what was rejected: 0 is not written")
	label := func(name, value string) []byte {
		b := protowire.AppendString(protowire.AppendTag(nil, v1LabelName, protowire.BytesType), name)
		return protowire.AppendString(protowire.AppendTag(b, v1LabelValue, protowire.BytesType), value)
	}
	assert.Equal(t, http.StatusBadRequest, with(v1Labels, label("zone", "a")), "a second series of the pod")
	assert.Contains(t, sink.Failing("uid-web-0"), `another with zone="a"`)
	assert.Equal(t, []float64{1, 2, 0}, sink.Values("uid-web-0"))
}

// TestSeriesThatAreNotKnown pushes series that a sender could make the cache grow with, or that
// would replace each other.
func TestSeriesThatAreNotKnown(t *testing.T) {
	r, sink := subscribed(gauge())
	long := "load{job=" + strings.Repeat("a", 1900) + ",namespace=shop,pod=web-0,service=" + strings.Repeat("b", 1900) +
		",zone=" + strings.Repeat("c", 1900) + "}"
	require.Equal(t, http.StatusNoContent, r.push(encodings[0], push(long, at(0, 1))).Code)
	assert.Empty(t, r.index.cached, "its labels are longer than those of any exporter")
	assert.Equal(t, []float64{1}, sink.Values("uid-web-0"))

	r, _ = subscribed(gauge())
	known := func() (labels string) {
		for labels = range r.index.cached {
		}
		require.Len(t, r.index.cached, 1)
		return labels
	}
	r.push(encodings[0], push(seriesA, at(0, 1)))
	first := known()
	r.at(30)
	r.push(encodings[0], push(seriesB, at(30, 1)))
	assert.Equal(t, first, known(), "of two that take turns")
	r.at(61)
	r.push(encodings[0], push(seriesB, at(61, 1)))
	assert.NotEqual(t, first, known(), "the labels have changed")
}

// TestKnownSeriesOfNamespaces adds a subscription by another pod label in one namespace. It costs
// the other namespace nothing.
func TestKnownSeriesOfNamespaces(t *testing.T) {
	r, _ := subscribed(gauge())
	bank := types.NamespacedName{Namespace: "bank", Name: "m"}
	r.Set(bank, gauge(), newFleet("bank", "web-0"), sourcetest.NewRecorder())
	other := "load{job=a,namespace=bank,pod=web-0}"
	r.push(encodings[0], push(seriesA, at(0, 1)), push(other, at(0, 1)))
	require.Len(t, r.index.cached, 2)
	whole := gauge()
	whole.PodLabel, whole.Whole = "", true
	r.Set(key("whole"), whole, newFleet("shop"), sourcetest.NewRecorder())
	require.Len(t, r.index.cached, 1)
	r.push(encodings[0], push(seriesA, at(1, 1)), push(other, at(1, 1)))
	assert.Len(t, r.index.cached, 1, "series of the first are of two")
	r.Remove(key("whole"))
	r.push(encodings[0], push(seriesA, at(2, 1)))
	assert.Len(t, r.index.cached, 2)
}

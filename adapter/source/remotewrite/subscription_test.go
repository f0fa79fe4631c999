package remotewrite

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/internal/promapi"
)

func TestSetAgainChangesNothingUnlessSomethingChanged(t *testing.T) {
	r, sink := newReceiver(), sourcetest.NewRecorder()
	r.at(100)
	fleet := newFleet("shop", "web-0")
	set := func(c Config) *subscription {
		r.Set(key("m"), c, fleet, sink)
		return r.subscriptions[key("m")]
	}
	first := set(counter())
	r.push(encodings[0], push(seriesA, at(0, 1)))
	assert.Same(t, first, set(counter()))
	r.push(encodings[0], push(seriesA, at(1, 2)))
	assert.Equal(t, []float64{1}, sink.Values("uid-web-0"))

	assert.NotSame(t, first, set(gauge()))
	r.push(encodings[0], push(seriesA, at(2, 3)))
	assert.Equal(t, []float64{1, 3}, sink.Values("uid-web-0"), "once, as a gauge")
	r.Remove(key("m"))
	assert.Empty(t, r.index.groups)
	assert.Zero(t, fleet.Watching())
	r.Remove(key("m"))
}

func TestPodsOfOneNameInSeveralNamespaces(t *testing.T) {
	r := newReceiver()
	shop, bank := sourcetest.NewRecorder(), sourcetest.NewRecorder()
	r.Set(key("m"), gauge(), newFleet("shop", "web-0"), shop)
	r.Set(types.NamespacedName{Namespace: "bank", Name: "m"}, gauge(), newFleet("bank", "web-0", "web-1"), bank)

	w := r.push(encodings[1], push("load{namespace=shop,pod=web-0}", at(0, 1)),
		push("load{namespace=bank,pod=web-0}", at(0, 2)), push("load{namespace=shop,pod=web-1}", at(0, 3)))
	assert.Equal(t, http.StatusNoContent, w.Code, w.Body)
	assert.Equal(t, []float64{1}, shop.Values("uid-web-0"))
	assert.Equal(t, []float64{2}, bank.Values("uid-web-0"))
	assert.Empty(t, bank.Values("uid-web-1"), "a pod of another namespace has this name")
	assert.Equal(t, 1, r.count(t, "unknown_pod"))
}

// A stranger's pod of the same name, whose series have no namespace, neither counts nor has the
// samples of others rejected, and a tenant that watches a pod of a name that no other namespace has
// gets nothing of it.
func TestSeriesWithoutANamespaceAreNobodys(t *testing.T) {
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			r := newReceiver()
			shop, spy := sourcetest.NewRecorder(), sourcetest.NewRecorder()
			r.Set(key("m"), gauge(), newFleet("shop", "web-0"), shop)
			r.Set(types.NamespacedName{Namespace: "spy", Name: "m"}, gauge(), newFleet("spy", "web-1"), spy)
			r.at(1000)
			for s := range 5 {
				w := r.push(e, push("load{pod=web-0}", at(float64(s), 100)),
					push("load{namespace=shop,pod=web-0}", at(float64(s), 1)),
					push("load{namespace=stranger,pod=web-0}", at(float64(s), 100)), push("load{pod=web-1}",
						at(float64(s), 100)))
				assert.Equal(t, http.StatusNoContent, w.Code, w.Body)
			}
			assert.Equal(t, []float64{1, 1, 1, 1, 1}, shop.Values("uid-web-0"))
			assert.Empty(t, shop.Failing("uid-web-0"))
			assert.Empty(t, spy.Values("uid-web-1"))
			assert.Equal(t, 10, r.count(t, "no_namespace_label"))
			assert.Equal(t, 5, r.count(t, "unknown_pod"))
		})
	}
}

func TestTheOperatorSaysWhoseSeriesAreWhose(t *testing.T) {
	r := newReceiver(func(o *Options) {
		o.Tenancy = promapi.Tenancy{NamespaceLabel: "k8s_namespace_name", Unlabelled: "shop"}
	})
	shop, bank := sourcetest.NewRecorder(), sourcetest.NewRecorder()
	r.Set(key("m"), gauge(), newFleet("shop", "web-0", "web-1"), shop)
	r.Set(types.NamespacedName{Namespace: "bank", Name: "m"}, gauge(), newFleet("bank", "web-0"), bank)
	w := r.push(encodings[0], push("load{namespace=bank,pod=web-0}", at(0, 1)),
		push("load{k8s_namespace_name=bank,namespace=shop,pod=web-0}", at(0, 2)),
		push("load{k8s_namespace_name=shop,pod=web-1}", at(0, 3)))
	assert.Equal(t, http.StatusNoContent, w.Code, w.Body)
	assert.Equal(t, []float64{1}, shop.Values("uid-web-0"))
	assert.Equal(t, []float64{3}, shop.Values("uid-web-1"))
	assert.Equal(t, []float64{2}, bank.Values("uid-web-0"))
}

func TestSeveralSubscriptionsOfOnePodKnowItByDifferentLabels(t *testing.T) {
	r := newReceiver()
	one, other := sourcetest.NewRecorder(), sourcetest.NewRecorder()
	byName := gauge()
	byName.PodLabel = "pod_name"
	fleet := newFleet("shop", "web-0")
	r.Set(key("one"), gauge(), fleet, one)
	r.Set(key("other"), byName, fleet, other)
	r.push(encodings[0], push("load{namespace=shop,pod=web-0}", at(0, 1)),
		push("load{namespace=shop,pod_name=web-0}", at(0, 2)))
	assert.Equal(t, []float64{1}, one.Values("uid-web-0"))
	assert.Equal(t, []float64{2}, other.Values("uid-web-0"))
	w := r.push(encodings[0], push("load{namespace=shop,pod=web-0,pod_name=web-0}", at(1, 3)))
	assert.Equal(t, http.StatusBadRequest, w.Code, "it is another series for both")
}

func TestReportsWhichSeriesArrivedInstead(t *testing.T) {
	for _, c := range []struct {
		name   string
		pushed string
		says   string
	}{
		{"nothing", "", `no sample of load{kind="queue", namespace="shop", pod=<the pod>} has been pushed for a pod of the target for 30s`},
		{"other labels", "load{kind=other,namespace=shop,pod=web-0}",
			`; series of its pods arrived with other labels, such as load{kind="other", namespace="shop", pod="web-0"}`},
		{"no pod", "load{instance=10.0.0.1,namespace=shop}",
			`; series arrived without the label pod, such as load{instance="10.0.0.1", namespace="shop"}`},
		{"other pods", "load{namespace=shop,pod=db-0}",
			`; series arrived for other pods, such as load{namespace="shop", pod="db-0"}`},
		{"another namespace", "load{kind=queue,namespace=bank,pod=web-0,secret=customer-4711}",
			`for a pod of the target for 30s`},
		{"no pod of another namespace", "load{kind=queue,namespace=bank,secret=customer-4711}",
			`for a pod of the target for 30s`},
		{"no namespace", "load{kind=queue,pod=web-0,secret=customer-4711}",
			`; series arrived without the label namespace, and belong to no pod`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, sink := New(Options{}), sourcetest.NewRecorder()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go s.watchSilence(ctx)
				fleet := newFleet("shop")
				s.Set(key("m"), matching(gauge(), "kind", "queue"), fleet, sink)
				time.Sleep(62 * time.Second)
				assert.Empty(t, sink.SourceErrors(), "of a fleet without pods, nothing is to be expected")

				fleet.Set(instance("shop", "web-0"))
				time.Sleep(27 * time.Second)
				if c.pushed != "" {
					do(s.handler(), encodings[0].request(push(c.pushed, decode.Sample{T: time.Now().UnixMilli()})))
				}
				synctest.Wait()
				assert.Empty(t, sink.SourceErrors())
				time.Sleep(10 * time.Second)
				synctest.Wait()
				require.NotEmpty(t, sink.SourceErrors())
				assert.Contains(t, sink.SourceErrors()[0], c.says)
				for _, foreign := range []string{"bank", "secret", "4711"} {
					assert.NotContains(t, sink.SourceErrors()[0], foreign)
				}
				if c.pushed == "" || strings.Contains(c.pushed, "bank") {
					assert.Regexp(t, `for 30s$`, sink.SourceErrors()[0])
				}

				do(s.handler(), encodings[0].request(push("load{kind=queue,namespace=shop,pod=web-0}",
					decode.Sample{T: time.Now().UnixMilli(), V: 1})))
				assert.Equal(t, []float64{1}, sink.Values("uid-web-0"))
				assert.Empty(t, sink.SourceErrors()[len(sink.SourceErrors())-1], "there is none any more")
				n := len(sink.SourceErrors())
				time.Sleep(29 * time.Second)
				assert.Len(t, sink.SourceErrors(), n)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				assert.Greater(t, len(sink.SourceErrors()), n, "silence again")
			})
		})
	}
}

func TestRequestsWhileSubscriptionsComeAndGo(t *testing.T) {
	r := newReceiver(func(o *Options) { o.Now = func() time.Time { return time.UnixMilli(start) } })
	fleets := make([]*sourcetest.Fleet, 8)
	var work sync.WaitGroup
	for i := range fleets {
		fleets[i] = newFleet("shop", fmt.Sprint("web-", i), "all-0")
		work.Go(func() {
			name := key(fmt.Sprint("m-", i))
			for n := range 50 {
				sink := sourcetest.NewRecorder()
				c := gauge()
				if n%2 == 0 {
					c.Type = source.Counter
				}
				r.Set(name, c, fleets[i], sink)
				fleets[i].Set(instance("shop", fmt.Sprint("web-", (i+n)%len(fleets))), instance("shop", "all-0"))
				r.reportSilence(true)
				if n%3 == 0 {
					r.Remove(name)
					had := len(sink.Samples("uid-all-0"))
					r.push(encodings[n%2], push("load{namespace=shop,pod=all-0}", at(0, 1)))
					assert.Len(t, sink.Samples("uid-all-0"), had, "a sink is not called any more")
				}
			}
			r.Remove(name)
		})
	}
	for i := range 4 {
		work.Go(func() {
			e := encodings[i%2]
			for n := range 100 {
				var all []pushed
				for pod := range fleets {
					all = append(all, push(fmt.Sprint("load{namespace=shop,pod=web-", pod, "}"), at(float64(n-100), 1)))
				}
				all = append(all, push("load{namespace=shop,pod=all-0}", at(float64(n-100), 1)))
				assert.Equal(t, http.StatusNoContent, r.push(e, all...).Code)
			}
		})
	}
	work.Wait()
	assert.Empty(t, r.index.groups)
}

// The load of a target as a whole is taken whichever pods there are, and one series alone may be it.
func TestTargetAsAWholeNeedsNoPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver()
		c := Config{Metric: "queue_length", Type: source.Gauge, Whole: true,
			MatchLabels: map[string]string{"queue": "orders"}}
		sink, other, pods := sourcetest.NewRecorder(), sourcetest.NewRecorder(), sourcetest.NewRecorder()
		fleet := newFleet("shop")
		r.Set(key("m"), c, fleet, sink)
		r.Set(types.NamespacedName{Namespace: "bank", Name: "m"}, c, newFleet("bank"), other)
		perPod := gauge()
		perPod.Metric = c.Metric
		r.Set(key("pods"), perPod, newFleet("shop", "web-0"), pods)

		w := r.push(encodings[1], push("queue_length{namespace=shop,queue=orders}", at(0, 12)),
			push("queue_length{namespace=shop,queue=mail}", at(0, 99)))
		assert.Equal(t, http.StatusNoContent, w.Code, w.Body)
		assert.Equal(t, []float64{12}, sink.Values(source.WholeTarget))
		assert.Empty(t, other.Values(source.WholeTarget), "it is of another namespace")
		assert.Empty(t, pods.All())

		fleet.Set(sourcetest.NewFleet().Instances(time.Time{})...)
		w = r.push(encodings[1], push("queue_length{namespace=shop,queue=orders}", at(1, 13)))
		assert.Equal(t, http.StatusNoContent, w.Code, w.Body)
		assert.Equal(t, []float64{12, 13}, sink.Values(source.WholeTarget))

		w = r.push(encodings[1], push("queue_length{namespace=shop,queue=orders,zone=b}", at(2, 50)))
		assert.Equal(t, http.StatusBadRequest, w.Code)
		assert.Contains(t, w.Body.String(), "queue_length: it has several series")
		r.Remove(key("m"))
		r.Remove(key("pods"))
		r.Remove(types.NamespacedName{Namespace: "bank", Name: "m"})
		assert.Empty(t, r.index.groups)
	})
}

func TestSilenceOfTheWholeTargetIsReported(t *testing.T) {
	r, sink := newReceiver(), sourcetest.NewRecorder()
	r.at(100)
	c := Config{Metric: "queue_length", Type: source.Gauge, Whole: true,
		MatchLabels: map[string]string{"queue": "orders"}}
	r.Set(key("m"), c, newFleet("shop"), sink)
	r.push(encodings[0], push("queue_length{namespace=shop,queue=mail}", at(100, 1)))
	r.at(131)
	r.reportSilence(false)
	assert.Contains(t, sink.LastSourceError(),
		`no sample of queue_length{queue="orders", namespace="shop"} has been pushed for 31s; series arrived with other labels, such as`)
}

package remotewrite

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/adapter/source/sourcetest"
)

// Bodies that are announced and never end, from one address, hold up no other sender: neither when little of them has
// arrived, nor when they hold all the memory that there is.
func TestSlowBodiesHoldUpNoOtherSender(t *testing.T) {
	for name, sent := range map[string]int{"announced": 1, "all but the end": 8<<20 - 1} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver()
			sink := sourcetest.NewRecorder()
			r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sink)
			server := httptest.NewUnstartedServer(r.handler)
			server.Config.ReadTimeout = readTimeout
			server.Start()
			defer server.Close()
			body := make([]byte, sent)
			for range 40 {
				slow, err := net.Dial("tcp", server.Listener.Addr().String())
				require.NoError(t, err)
				defer slow.Close()
				_, err = fmt.Fprintf(slow, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", path, 8<<20)
				require.NoError(t, err)
				go func() {
					_, _ = slow.Write(body) // until it is given up
					if response, err := http.ReadResponse(bufio.NewReader(slow), nil); err == nil {
						_ = response.Body.Close()
					}
				}()
			}
			full := r.options.MaxInFlightBytes
			if sent == 1 {
				full = 40 * minRoom
			}
			require.Eventually(t, func() bool { return r.ingester.bodies.budget.InUse() >= full },
				20*time.Second, time.Millisecond)
			for i := range 5 {
				request := encodings[0].request(push("load{namespace=shop,pod=web-0}", at(float64(i%5), 1)))
				request.RemoteAddr = "10.0.0.1:1"
				began := time.Now()
				w := do(r.handler, request)
				require.Equal(t, http.StatusNoContent, w.Code, w.Body)
				assert.Less(t, time.Since(began), patience, "it did not wait until they ended")
			}
		})
	}
}

// Strangers' pod labels, and as many of the namespace itself, cost the series of a tenant nothing.
func TestPodLabelsOfOthersCostNothing(t *testing.T) {
	r := newReceiver()
	r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sourcetest.NewRecorder())
	l := decode.Labels{{Name: decode.MetricName, Value: "load"}, {Name: "namespace", Value: "shop"},
		{Name: "pod", Value: "web-0"}}
	cost := func() time.Duration {
		least := time.Hour
		for range 20 {
			began, found := time.Now(), 0
			for range 100 {
				r.index.find(l, func(of []*member) { found += len(of) })
			}
			require.Equal(t, 100, found)
			least = min(least, time.Since(began))
		}
		return least
	}
	alone := cost()
	for i := range 5000 {
		c := gauge()
		c.PodLabel = fmt.Sprint("label_", i)
		of := types.NamespacedName{Namespace: []string{"bank", "shop"}[i%2], Name: fmt.Sprint("pm-", i)}
		r.Set(of, c, newFleet(of.Namespace, "web-0"), sourcetest.NewRecorder())
	}
	assert.Less(t, cost(), 10*alone)
}

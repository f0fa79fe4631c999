//go:build !race

package prometheus

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/source/sourcetest"
)

// longest is how long answers are in this test, a part of what they may be: memory is in proportion.
const longest = 8 << 20

// repeated is a text of that length: a head, what each makes of the numbers from 0 on, and a tail.
func repeated(head string, each func(i int) string, tail string) string {
	limit := longest - len(tail)
	var b strings.Builder
	b.Grow(limit + len(tail))
	b.WriteString(head)
	for i := 0; ; i++ {
		next := each(i)
		if b.Len()+len(next) > limit {
			break
		}
		b.WriteString(next)
	}
	return strings.TrimSuffix(b.String(), ",") + tail
}

// The answers of a server that means ill take no more memory than is taken of the budget for them.
func TestMemoryOfAnAnswerIsBounded(t *testing.T) {
	const head, end = `{"status":"success","data":{"resultType":"matrix","result":[`, `]}}`
	always := func(s string) func(int) string { return func(int) string { return s } }
	for _, c := range []struct {
		name string
		body func() string
		says string // "" for an answer that is taken
	}{
		{"labels", func() string {
			return repeated(head+`{"values":[[1,"1"]],"metric":{`,
				func(i int) string { return `"` + strconv.FormatInt(int64(i), 36) + `":"",` }, `}}`+end)
		}, ""},
		{"honest", func() string {
			value := func(i int) string { return fmt.Sprintf(`[%d.781,"0.%07d"],`, 1435781451+i, i%1e7) }
			return repeated(head+`{"metric":{"__name__":"load","namespace":"shop","pod":"a"},"values":[`, value,
				`]}`+end)
		}, ""},
		{"values", func() string { return repeated(head+`{"metric":{},"values":[`, always(`[1,"1"],`), `]}`+end) }, ""},
		{"histograms", func() string {
			return repeated(head+`{"metric":{},"histograms":[[1,{"count":"1","sum":"1","buckets":[`,
				always(`[0,"0","1","1"],`), `]}]]}`+end)
		}, ""},
		{"warnings", func() string {
			return repeated(`{"status":"success","warnings":[`, always(`"",`),
				`],"data":{"resultType":"matrix","result":[]}}`)
		}, ""},
		{"series", func() string { return repeated(head, always(`{"values":[[1,"1"]]},`), end) },
			"the answer has more than 160016 objects"},
		{"results", func() string { return repeated(head, always(`null,`), end) }, "more than 10000 series"},
		{"error", func() string {
			return repeated(`{"status":"error","errorType":"execution","error":"`, always(`a `), `"}`)
		}, "execution: a a a"},
		{"depth", func() string { return repeated(head, always(`[`), "") },
			"the answer is incomplete or not from Prometheus"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := c.body()
			var s *Source
			budgeted := int64(0)
			s = newSource(Options{MaxBytes: longest, MaxMemory: 1 << 30}.withDefaults(),
				roundTrip(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: -1,
						Body: io.NopCloser(watched{strings.NewReader(body),
							func() { budgeted = max(budgeted, s.connector.InUse()) }})}, nil
				}))
			config := gauge()
			require.NoError(t, s.Set(key("pm"), config, fleetOf("a"), newRecorder()))
			g := only(s.groups)
			before := sourcetest.HeapInUse()
			peak := sourcetest.PeakOf(func() {
				if err := g.ask(t.Context()); c.says == "" {
					assert.NoError(t, err)
				} else {
					assert.ErrorContains(t, err, c.says)
				}
			}) - before
			left := sourcetest.HeapInUse() - before
			runtime.KeepAlive(body)
			t.Logf("heap: %d MiB before, %+d KiB after, %+d MiB at most in between, of %d MiB in the budget",
				before>>20,
				left/1024, peak>>20, budgeted>>20)
			assert.Less(t, left, int64(256<<10), "nothing is left behind")
			assert.Zero(t, s.connector.InUse())
			assert.Less(t, peak, budgeted)
		})
	}
}

// However many addresses a namespace, or several, have queried at once, answers take no more memory than the budget.
func TestMemoryOfManyServersIsBounded(t *testing.T) {
	const budget, servers, length = 96 << 20, 64, 4<<20 - 1
	body := repeated(`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"1"]],"metric":{`,
		func(i int) string { return `"` + strconv.FormatInt(int64(i), 36) + `":"",` }, `}}]}}`)[:length]
	s := newSource(Options{MaxMemory: budget}.withDefaults(), roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: -1,
			Body: io.NopCloser(strings.NewReader(body))}, nil
	}))
	for i := range servers {
		c := gauge()
		c.Address = fmt.Sprintf("http://prometheus-%d:9090", i)
		require.NoError(t, s.Set(types.NamespacedName{Namespace: fmt.Sprint("team-", i%4), Name: c.Address}, c,
			fleetOf("a"), newRecorder()))
	}
	before := sourcetest.HeapInUse()
	peak := sourcetest.PeakOf(func() {
		var asking sync.WaitGroup
		for _, g := range s.groups {
			asking.Go(func() { _ = g.ask(t.Context()) })
		}
		asking.Wait()
	}) - before
	runtime.KeepAlive(body)
	t.Logf("%d answers of %d MiB: %+d MiB at most, of %d MiB in the budget", servers, length>>20, peak>>20, budget>>20)
	assert.Less(t, peak, int64(budget))
	assert.Zero(t, s.connector.InUse())
}

// watched is a body that calls a function before each read.
type watched struct {
	io.Reader
	before func()
}

func (w watched) Read(p []byte) (int, error) {
	w.before()
	return w.Reader.Read(p)
}

//go:build !race

package prometheus

import (
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/internal/promapi"
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

// The answers of a server that means ill take no more memory than in a bound.
func TestMemoryOfAnAnswerIsBounded(t *testing.T) {
	const perByte = 20
	require.LessOrEqual(t, perByte*Options{}.withDefaults().MaxBytes, int64(640<<20), "what the largest takes, of which there is one at once")
	require.Equal(t, 1, promapi.LargeAtOnce)
	const head, end = `{"status":"success","data":{"resultType":"matrix","result":[`, `]}}`
	always := func(s string) func(int) string { return func(int) string { return s } }
	for _, c := range []struct {
		name string
		body func() string
		says string // "" for an answer that is taken
	}{
		{"labels", func() string {
			return repeated(head+`{"values":[[1,"1"]],"metric":{`, func(i int) string { return `"` + strconv.FormatInt(int64(i), 36) + `":"",` }, `}}`+end)
		}, ""},
		{"values", func() string { return repeated(head+`{"metric":{},"values":[`, always(`[1,"1"],`), `]}`+end) }, ""},
		{"histograms", func() string {
			return repeated(head+`{"metric":{},"histograms":[[1,{"count":"1","sum":"1","buckets":[`, always(`[0,"0","1","1"],`), `]}]]}`+end)
		}, ""},
		{"warnings", func() string {
			return repeated(`{"status":"success","warnings":[`, always(`"",`), `],"data":{"resultType":"matrix","result":[]}}`)
		}, ""},
		{"series", func() string { return repeated(head, always(`{"values":[[1,"1"]]},`), end) }, "the answer has more than 160016 objects"},
		{"results", func() string { return repeated(head, always(`null,`), end) }, "more than 10000 series"},
		{"error", func() string {
			return repeated(`{"status":"error","errorType":"execution","error":"`, always(`a `), `"}`)
		}, "execution: a a a"},
		{"depth", func() string { return repeated(head, always(`[`), "") }, "the answer is incomplete or not from Prometheus"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := c.body()
			s := newSource(Options{MaxBytes: longest}.withDefaults(), roundTrip(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}, nil
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
			t.Logf("heap: %d MiB before, %+d KiB after, %+d MiB at most in between", before>>20, left/1024, peak>>20)
			assert.Less(t, left, int64(256<<10), "nothing is left behind")
			assert.Less(t, peak, int64(perByte*longest))
		})
	}
}

package remotewrite

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
	"github.com/foresail/foresail/adapter/source/sourcetest"
)

func TestOTLPAnswers(t *testing.T) {
	type change = func(*http.Request)
	header := func(name, value string) change { return func(r *http.Request) { r.Header.Set(name, value) } }
	zip := header("Content-Encoding", "gzip")
	small := export("web-0").gauge("load", at(0, 1))
	samples := make([]decode.Sample, 21)
	for _, f := range otlpForms {
		valid := f.body(small)
		for _, c := range []struct {
			name   string
			body   []byte
			change change
			code   int
			says   string
		}{
			{"valid", valid, nil, 200, ""},
			{"empty of protobuf, of JSON not", nil, nil, map[string]int{"protobuf": 200, "JSON": 400}[f.name], ""},
			{"compressed", zipped(valid), zip, 200, ""},
			{"in parts", append(zipped(valid[:5]), zipped(valid[5:])...), zip, 200, ""},
			{"not compressed, it says", valid, header("Content-Encoding", "identity"), 200, ""},
			{"with a character set", valid, header("Content-Type", f.contentType+"; charset=utf-8"), 200, ""},
			{"not compressed", valid, zip, 400, "the body is not in gzip's format"},
			{"compressed and cut short", zipped(valid)[:len(zipped(valid))-3], zip, 400,
				"the body is not in gzip's format: unexpected EOF"},
			{"snappy", valid, header("Content-Encoding", "snappy"), 415,
				`Content-Encoding: "snappy": must be gzip, or left out`},
			{"not a message", []byte("load 1\n"), nil, 400, "the body is not the message that the Content-Type names"},
			{"cut short", valid[:len(valid)-3], nil, 400, "the body is not the message that the Content-Type names"},
			{"GET", nil, func(r *http.Request) { r.Method = http.MethodGet }, 405, ""},
			{"another signal", valid, func(r *http.Request) { r.URL.Path = "/v1/traces" }, 404, ""},
			{"large", make([]byte, 1001), nil, 413, "the body is larger than 1000 bytes as sent"},
			{"large, without saying so", make([]byte, 1001), func(r *http.Request) { r.ContentLength = -1 }, 413,
				"larger than 1000 bytes as sent"},
			{"as large as it may be once decompressed", zipped(make([]byte, 20_000)), zip,
				map[string]int{"protobuf": 400, "JSON": 413}[f.name],
				map[string]string{"JSON": "larger than 20000 bytes once decoded"}[f.name]},
			{"large once decompressed", zipped(make([]byte, 20_001)), zip, 413,
				"larger than 20000 bytes once decompressed"},
			{"a bomb", zipped(make([]byte, 900_000)), zip, 413, "larger than 20000 bytes once decompressed"},
			{"many data points", zipped(f.body(export("web-0").gauge("other", samples...))), zip, 413,
				"more than 20 series in one request"},
			{"many metrics", zipped(f.body(manyMetrics(21))), zip, 413, "more than 20 series in one request"},
		} {
			t.Run(c.name+"/"+f.name, func(t *testing.T) {
				r := newReceiver(func(o *Options) {
					o.MaxBodyBytes, o.MaxDecodedBytes, o.MaxSeries = 1000, 20_000, 20
					o.MaxInFlightBytes = 128 << 20
				})
				sink := sourcetest.NewRecorder()
				r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sink)
				request := f.post(c.body)
				if c.change != nil {
					c.change(request)
				}
				w := do(r.handler, request)
				require.Equal(t, c.code, w.Code, w.Body)
				switch {
				case c.code == http.StatusOK:
					points, why := f.partial(t, w)
					assert.Zero(t, points)
					assert.Empty(t, why)
				case c.code != http.StatusMethodNotAllowed && c.code != http.StatusNotFound:
					assert.Contains(t, f.failure(t, w), c.says)
				}
				if c.code == http.StatusOK && len(c.body) > 0 {
					assert.Equal(t, []float64{1}, sink.Values("uid-web-0"))
				} else {
					assert.Empty(t, sink.Values("uid-web-0"))
				}
				assert.Zero(t, sourcetest.Gathered(t, r.registry, "foresail_remote_write_in_flight_bytes", ""),
					"all is given back")
			})
		}
	}
}

// manyMetrics has metrics without data points.
func manyMetrics(n int) exported {
	e := export("web-0")
	for range n {
		e.gauge("load")
	}
	return e
}

func TestOTLPOfAnotherContentType(t *testing.T) {
	r := newReceiver()
	for _, content := range []string{"", "text/plain", "application/x-protobuf/x", "application/grpc"} {
		request := otlpForms[0].post(nil)
		request.Header.Set("Content-Type", content)
		w := do(r.handler, request)
		assert.Equal(t, http.StatusUnsupportedMediaType, w.Code)
		assert.Contains(t, w.Body.String(), "must be application/x-protobuf or application/json")
	}
}

func TestOTLPSendersAreAskedToTryAgain(t *testing.T) {
	for _, f := range otlpForms {
		t.Run(f.name, func(t *testing.T) {
			unknown := errors.New("pods have not been listed yet")
			r := newReceiver(func(o *Options) { o.Ready = func() error { return unknown } })
			body := f.body(export("web-0").gauge("load", at(0, 1)))
			try := func(code int, says string) {
				t.Helper()
				w := do(r.handler, f.post(body))
				require.Equal(t, code, w.Code)
				if code != http.StatusOK {
					assert.Equal(t, "1", w.Header().Get("Retry-After"))
					assert.Contains(t, f.failure(t, w), says)
				}
			}
			try(503, "samples cannot be assigned to pods yet: pods have not been listed yet")
			unknown = nil
			try(200, "")
			for _, left := range []int64{0, int64(len(body)), decode.OTLPSize(body[:1]) + int64(len(body))} {
				synctest.Test(t, func(t *testing.T) {
					others := r.occupy(t, r.options.MaxInFlightBytes-left)
					try(503, "too much is being received at once")
					others.End()
				})
			}
			try(200, "")
		})
	}
}

func TestOTLPNeedsTheToken(t *testing.T) {
	r := newReceiver(func(o *Options) { o.BearerTokenFile = file(t, "secret\n") })
	for _, f := range otlpForms {
		request := f.post(f.body(export("web-0").gauge("load", at(0, 1))))
		w := do(r.handler, request.Clone(t.Context()))
		assert.Equal(t, http.StatusUnauthorized, w.Code)
		assert.Equal(t, "Bearer", w.Header().Get("WWW-Authenticate"))
		assert.Equal(t, "a valid bearer token is required", f.failure(t, w))
		request.Header.Set("Authorization", "Bearer secret")
		assert.Equal(t, http.StatusOK, do(r.handler, request).Code)
	}
}

func TestOTLPNeedsTheUsersOfTheWebConfiguration(t *testing.T) {
	r := newReceiver(func(o *Options) { o.WebConfigFile = users(t, bcrypt.MinCost) })
	sink := sourcetest.NewRecorder()
	r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sink)
	url := strings.TrimSuffix(serving(t, r.Source), path) + otlpPath
	f := otlpForms[0]
	try := func(change func(*http.Request)) int {
		return send(t, url, f.contentType, zipped(f.body(export("web-0").gauge("load", at(0, 1)))),
			func(r *http.Request) {
				r.Header.Set("Content-Encoding", "gzip")
				change(r)
			})
	}
	assert.Equal(t, http.StatusUnauthorized, try(func(*http.Request) {}))
	assert.Equal(t, http.StatusUnauthorized, try(func(r *http.Request) { r.SetBasicAuth("agent", "wrong") }))
	assert.Empty(t, sink.Values("uid-web-0"))
	assert.Equal(t, http.StatusOK, try(func(r *http.Request) { r.SetBasicAuth("agent", "secret") }))
	assert.Equal(t, []float64{1}, sink.Values("uid-web-0"))
}

// A web configuration that has lost its users would let in anybody.
func TestOTLPIsRejectedWhenUsersAreRemoved(t *testing.T) {
	web := users(t, bcrypt.MinCost)
	r := newReceiver(func(o *Options) { o.WebConfigFile, o.Address = web, ":9201" })
	f := otlpForms[0]
	try := func() int { return do(r.handler, f.post(f.body(export("web-0").gauge("load", at(0, 1))))).Code }
	assert.Equal(t, http.StatusOK, try(), "the file itself is the server's to check")
	require.NoError(t, os.WriteFile(web, []byte("http_server_config:\n  http2: true\n"), 0o600))
	r.at(2)
	assert.Equal(t, http.StatusServiceUnavailable, try())
}

// What is nested deep, or takes much more memory than on the wire.
func TestOTLPBombsInJSON(t *testing.T) {
	r := newReceiver()
	f := otlpForms[1]
	deep := `{"resourceMetrics":[{"resource":{"attributes":[{"key":"a","value":` +
		strings.Repeat(`{"arrayValue":{"values":[`, 1_000_000)
	w := do(r.handler, gzipped(f, deep))
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Contains(t, f.failure(t, w), "it is nested more than 100 deep")

	wide := `{"resourceMetrics":[` + strings.Repeat("{},", 200_000) + "{}]}"
	w = do(r.handler, gzipped(f, wide))
	assert.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	assert.Contains(t, f.failure(t, w), "once decoded: send protobuf, or fewer data points in a request")

	quoted := `{"resourceMetrics":[],"x":"` + strings.Repeat(`{[\"`, 1000) + `"}`
	assert.Equal(t, http.StatusOK, do(r.handler, gzipped(f, quoted)).Code, "what is in a string is no object")
}

func gzipped(f otlpForm, body string) *http.Request {
	r := f.post(zipped([]byte(body)))
	r.Header.Set("Content-Encoding", "gzip")
	return r
}

// The memory that a request may take is held before it is taken.
func TestUnzipHoldsWhatItTakes(t *testing.T) {
	r := newReceiver(func(o *Options) { o.MaxInFlightBytes = 1 })
	body := zipped(bytes.Repeat([]byte{0}, 4<<20))
	synctest.Test(t, func(t *testing.T) {
		others := r.occupy(t, r.options.MaxInFlightBytes-(1<<20))
		request := otlpForms[0].post(body)
		request.Header.Set("Content-Encoding", "gzip")
		assert.Equal(t, http.StatusServiceUnavailable, do(r.handler, request).Code)
		others.End()
		assert.Zero(t, r.ingester.bodies.budget.InUse(), "all is given back")
	})
}

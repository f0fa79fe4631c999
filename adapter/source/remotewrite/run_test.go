package remotewrite

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/internal/servertls/servertlstest"
)

// users is a configuration file with a user whose password is "secret".
func users(tb testing.TB, cost int) string {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), cost)
	require.NoError(tb, err)
	return file(tb, "basic_auth_users:\n  agent: "+string(hash)+"\n")
}

// file writes a file of a test.
func file(tb testing.TB, text string) string {
	path := filepath.Join(tb.TempDir(), "file")
	require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAnonymousWritesNeedAnOption(t *testing.T) {
	people := users(t, bcrypt.MinCost)
	none := file(t, "http_server_config:\n  http2: true\n")
	token := file(t, "secret\n")
	ours := servertlstest.NewAuthority(t, "ours")
	for _, c := range []struct {
		name    string
		options Options
		says    string // "" for nothing wrong
	}{
		{"loopback", Options{Address: "127.0.0.1:9201"}, ""},
		{"loopback, version 6", Options{Address: "[::1]:9201"}, ""},
		{"localhost", Options{Address: "localhost:9201"}, ""},
		{"everywhere", Options{Address: ":9201"},
			`Address: ":9201": must be a loopback address, unless senders are authenticated (BearerTokenFile, `},
		{"an address of the machine", Options{Address: "10.0.0.1:9201"},
			"anonymous clients are allowed (AllowAnonymous): anybody who can reach it could write"},
		{"a name", Options{Address: "foresail:9201"},
			"in WebConfigFile basic_auth_users, or client certificates with client_allowed_sans)"},
		{"everywhere, as told", Options{Address: ":9201", AllowAnonymous: true}, ""},
		{"a token", Options{Address: ":9201", BearerTokenFile: token}, ""},
		{"users", Options{Address: ":9201", WebConfigFile: people}, ""},
		{"a configuration without users", Options{Address: ":9201", WebConfigFile: none},
			"anybody who can reach it could write"},
		{"client certificates", Options{Address: ":9201", WebConfigFile: webConfigOf(t, ours, "collector")}, ""},
		{"client certificates of any name", Options{Address: ":9201", WebConfigFile: webConfigOf(t, ours)},
			"could write"},
		{"users and a token", Options{Address: ":9201", WebConfigFile: people, BearerTokenFile: token},
			"must be empty where WebConfigFile has basic_auth_users"},
		{"a token file that is not there", Options{Address: ":9201", BearerTokenFile: "nowhere"},
			`BearerTokenFile: "nowhere": must be a file that holds a token: open nowhere`},
		{"an empty token file", Options{Address: ":9201", BearerTokenFile: file(t, " \n")},
			"must be a file that holds a token: it is empty"},
		{"a configuration that is not there", Options{Address: ":9201", WebConfigFile: "nowhere"},
			`WebConfigFile: "nowhere": must be a web configuration`},
		{"a configuration that is none", Options{Address: ":9201", WebConfigFile: file(t, "users: []\n")},
			"must be a web configuration"},
		{"no address", Options{}, `Address: "": must be a host and a port, such as :9201`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.options.Validate()
			if c.says == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.says)
			assert.ErrorContains(t, New(c.options).Run(t.Context()), c.says)
		})
	}
}

func TestTokenFileMayBeReplaced(t *testing.T) {
	path := file(t, "first\n")
	r := newReceiver(func(o *Options) { o.BearerTokenFile = path })
	try := func(authorization string) int {
		request := encodings[0].request(push("load{namespace=shop,pod=web-0}", at(0, 1)))
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		return do(r.handler, request).Code
	}
	assert.Equal(t, http.StatusNoContent, try("Bearer first"))
	assert.Equal(t, http.StatusNoContent, try("bearer first"))
	for _, wrong := range []string{"", "Bearer", "Bearer ", "Bearer firs", "Bearer firstx", "Basic first", "first"} {
		assert.Equal(t, http.StatusUnauthorized, try(wrong), wrong)
	}

	// As a kubelet does it: another file under the name.
	next := file(t, "second")
	require.NoError(t, os.Rename(next, path))
	assert.Equal(t, http.StatusUnauthorized, try("Bearer second"), "it is not looked at with each request")
	r.at(1)
	assert.Equal(t, http.StatusNoContent, try("Bearer second"))
	assert.Equal(t, http.StatusUnauthorized, try("Bearer first"))

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	r.at(2)
	assert.Equal(t, http.StatusServiceUnavailable, try("Bearer second"))
	assert.Equal(t, http.StatusServiceUnavailable, try("Bearer "), "no one knows an empty token")
	require.NoError(t, os.Remove(path))
	r.at(3)
	assert.Equal(t, http.StatusServiceUnavailable, try("Bearer "))
	require.NoError(t, os.WriteFile(path, []byte("third"), 0o600))
	r.at(4)
	assert.Equal(t, http.StatusNoContent, try("Bearer third"))
}

// serving serves a source on a loopback address until the test ends.
func serving(tb testing.TB, s *Source) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.serve(ctx, l) }()
	tb.Cleanup(func() {
		cancel()
		require.NoError(tb, <-done)
	})
	return "http://" + l.Addr().String() + path
}

// send posts a body and returns the code of the answer.
func send(tb testing.TB, url, contentType string, body []byte, change func(*http.Request)) int {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	require.NoError(tb, err)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Content-Encoding", "snappy")
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(tb, err)
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(tb, err)
	return answer.StatusCode
}

func TestServing(t *testing.T) {
	r := newReceiver(func(o *Options) {
		o.WebConfigFile = users(t, bcrypt.MinCost)
	})
	sink := sourcetest.NewRecorder()
	r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sink)
	url := serving(t, r.Source)
	body := requestsOf(encodings[1], []string{"load{namespace=shop,pod=web-0}"})[0]
	assert.Equal(t, http.StatusUnauthorized, send(t, url, encodings[1].contentType, body, nil))
	assert.Equal(t, http.StatusUnauthorized,
		send(t, url, encodings[1].contentType, body, func(r *http.Request) { r.SetBasicAuth("agent", "wrong") }))
	assert.Empty(t, sink.Samples("uid-web-0"))
	assert.Equal(t, http.StatusNoContent,
		send(t, url, encodings[1].contentType, body, func(r *http.Request) { r.SetBasicAuth("agent", "secret") }))
	assert.Equal(t, []float64{0}, sink.Values("uid-web-0"))
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	assert.NoError(t, New(Options{Address: "127.0.0.1:0"}).Run(ctx))
	assert.ErrorContains(t, New(Options{Address: "127.0.0.1:99999"}).Run(t.Context()),
		`Address: "127.0.0.1:99999": must be one to listen on`)
}

// BenchmarkAccess measures the cost of admitting a request, over a connection that is kept.
func BenchmarkAccess(b *testing.B) {
	for _, c := range []struct {
		name    string
		options Options
		change  func(*http.Request)
	}{
		{"anonymous", Options{}, nil},
		{"bearer", Options{BearerTokenFile: file(b, "secret")},
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret") }},
		{"basic", Options{WebConfigFile: users(b, bcrypt.DefaultCost)},
			func(r *http.Request) { r.SetBasicAuth("agent", "secret") }},
	} {
		b.Run(c.name, func(b *testing.B) {
			url := serving(b, New(c.options))
			require.Equal(b, http.StatusNoContent, send(b, url, "", []byte{0}, c.change))
			n, before := 0, processorTime(b)
			for b.Loop() {
				send(b, url, "", []byte{0}, c.change)
				n++
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(n), "core-µs/request")
		})
	}
}

// A file that has lost its users would let in anybody.
func TestRejectsWritesWhenUsersAreRemoved(t *testing.T) {
	path := users(t, bcrypt.MinCost)
	r := newReceiver(func(o *Options) { o.WebConfigFile, o.Address = path, ":9201" })
	r.Set(key("m"), gauge(), newFleet("shop", "web-0"), sourcetest.NewRecorder())
	try := func() int { return r.push(encodings[0], push("load{namespace=shop,pod=web-0}", at(0, 1))).Code }
	assert.Equal(t, http.StatusNoContent, try(), "the file itself is the server's to check")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("http_server_config:\n  http2: true\n"), 0o600))
	r.at(2)
	assert.Equal(t, http.StatusServiceUnavailable, try())
	require.NoError(t, os.WriteFile(path, before, 0o600))
	r.at(4)
	assert.Equal(t, http.StatusNoContent, try())
}

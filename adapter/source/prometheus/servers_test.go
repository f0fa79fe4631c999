package prometheus

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/promapi"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRejectsServersThatAreNotListed(t *testing.T) {
	load := func(text string) *promapi.Servers {
		s, err := promapi.LoadServers(write(t, filepath.Join(t.TempDir(), "file.yaml"), text))
		require.NoError(t, err)
		return s
	}
	listed := "servers: [{address: 'http://prometheus:9090/', httpClientConfig: {basic_auth: {username: u, password: p}}}, {address: 'https://other'}]"
	set := func(servers *promapi.Servers, address string) error {
		c := gauge()
		c.Address = address
		return New(Options{Servers: servers}).Set(key("pm"), c, fleetOf("a"), newRecorder())
	}
	require.NoError(t, set(nil, "http://anything"))
	require.NoError(t, set(load(listed), "http://PROMETHEUS:9090"))
	require.EqualError(t, set(load(listed), "http://anything"),
		`address: "http://anything": must be listed by the operator: "http://prometheus:9090", "https://other"`)
	require.Error(t, set(load(listed), "http://prometheus:9090/path"))
	unlisted := load(listed)
	unlisted.AllowUnlisted = true
	require.NoError(t, set(unlisted, "http://anything"))
	require.EqualError(t, set(load(""), "http://anything"), `address: "http://anything": the operator lists no servers`)
}

func TestConfigIsValidated(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		want   string
	}{
		"as it should be": {func(*Config) {}, ""},
		"with a path":     {func(c *Config) { c.Address = "https://prom.example/tenant/a/" }, ""},
		"an IPv6 address": {func(c *Config) { c.Address = "http://[::1]:9090" }, ""},
		"no address": {func(c *Config) { c.Address = "" },
			`address: "": must be an http or https URL without user, query or fragment, such as http://prometheus.monitoring:9090`},
		"another scheme": {func(c *Config) { c.Address = "file:///etc/passwd" },
			`address: "file:///etc/passwd": must be an http`},
		"no scheme": {func(c *Config) { c.Address = "prometheus:9090" },
			`address: "prometheus:9090": must be an http`},
		"no host":        {func(c *Config) { c.Address = "http://:9090" }, `address: "http://:9090": must be an http`},
		"a user":         {func(c *Config) { c.Address = "http://me:secret@p" }, `address: "…@p": must be an http`},
		"a query":        {func(c *Config) { c.Address = "http://p?x=1" }, `address: "http://p?x=1": must be an http`},
		"an empty query": {func(c *Config) { c.Address = "http://p?" }, `address: "http://p?": must be an http`},
		"a fragment":     {func(c *Config) { c.Address = "http://p/#x" }, `address: "http://p/#x": must be an http`},
		"a path of two kinds": {func(c *Config) { c.Address = "http://p/a/../b" },
			`address: "http://p/a/../b": must be an http`},
		"an encoded path": {func(c *Config) { c.Address = "http://p/a%2Fb" },
			`address: "http://p/a%2Fb": must be an http`},
		"control characters": {func(c *Config) { c.Address = "http://p\n" }, `address: "http://p\n": must be an http`},
		"no query at all": {func(c *Config) { c.Query = " \n" }, `query: " \n": ` + acceptedHere +
			`: 2:1: parse error: unexpected end of input`},
		"an expression": {func(c *Config) { c.Query = "rate(load[1m])" }, `query: "rate(load[1m])": ` + acceptedHere +
			`: 1:5: parse error: unexpected "("`},
		"another namespace": {func(c *Config) { c.Query = `load{namespace=~"b.*"}` },
			`namespace=~"b.*" excludes the namespace of the PredictedMetric`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := gauge()
			test.change(&c)
			err := New(Options{}).Set(key("pm"), c, fleetOf("a"), newRecorder())
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
	err := New(Options{}).Set(key("pm"), Config{}, fleetOf("a"), newRecorder())
	assert.Len(t, strings.Split(err.Error(), "\n"), 2, "all at once")
}

// asking queries a server once and returns the sink.
func asking(t *testing.T, servers *promapi.Servers, address string) *recorder {
	t.Helper()
	s := New(Options{Servers: servers, Timeout: time.Minute})
	sink := newRecorder()
	c := gauge()
	c.Address, c.Interval, c.Window = address, time.Minute, time.Minute // the interval limits the timeout
	require.NoError(t, s.Set(key("pm"), c, fleetOf("a"), sink))
	_ = only(s.groups).ask(t.Context())
	s.Remove(key("pm"))
	return sink
}

func TestAuthentication(t *testing.T) {
	got := make(chan string, 10)
	body := matrix(pod("a", 1, 2))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, body)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	directory := t.TempDir()
	write(t, filepath.Join(directory, "token"), "first\n")
	write(t, filepath.Join(directory, "password"), "geheim\n")
	write(t, filepath.Join(directory, "ca.crt"),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	load := func(text string) *promapi.Servers {
		s, err := promapi.LoadServers(write(t, filepath.Join(directory, "servers.yaml"), text))
		require.NoError(t, err)
		return s
	}
	bearer := load("servers: [{address: '" + secure.URL +
		"', httpClientConfig: {authorization: {credentials_file: token}, tls_config: {ca_file: ca.crt}}}]")
	sink := asking(t, bearer, secure.URL)
	assert.Equal(t, []float64{1, 2}, sink.values("a"))
	assert.Equal(t, "Bearer first", <-got)
	write(t, filepath.Join(directory, "token"), "second\n")
	asking(t, bearer, secure.URL)
	assert.Equal(t, "Bearer second", <-got, "the file is read again")

	basic := load("servers: [{address: '" + plain.URL + "/other'}, {address: '" + plain.URL +
		"', httpClientConfig: {basic_auth: {username: me, password_file: password}}}]")
	asking(t, basic, plain.URL)
	assert.Equal(t, "Basic bWU6Z2VoZWlt", <-got)
	asking(t, basic, plain.URL+"/other")
	assert.Empty(t, <-got, "another address gets no credentials")

	sink = asking(t, nil, secure.URL)
	assert.Contains(t, sink.LastSourceError(), "certificate")

	require.NoError(t, os.Remove(filepath.Join(directory, "password")))
	sink = asking(t, basic, plain.URL)
	assert.Contains(t, sink.LastSourceError(), "unable to read basic auth password")
}

// A user who may write a PredictedMetric cannot have the node itself queried, whatever name leads
// there, nor be redirected there.
func TestUnlistedServersOnTheNode(t *testing.T) {
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer server.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	unlisted := &promapi.Servers{AllowUnlisted: true}
	for _, address := range []string{server.URL, "http://localhost" + port, "http://[::1]" +
		port, "http://169.254.169.254"} {
		sink := asking(t, unlisted, address)
		assert.Contains(t, sink.LastSourceError(), "address: must be listed by the operator", address)
	}
	moved := httptest.NewServer(http.RedirectHandler(server.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	unlisted.List(moved.URL)
	assert.Contains(t, asking(t, unlisted, moved.URL).LastSourceError(), "which is not followed")
	assert.Empty(t, asked)
}

// A redirect elsewhere is not followed, so that credentials cannot leave. One within the server is.
func TestRedirects(t *testing.T) {
	asked := make(chan string, 100)
	body := matrix(pod("a", 1, 2))
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
	}))
	defer thief.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/away"):
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		case strings.HasPrefix(r.URL.Path, "/moved"):
			http.Redirect(w, r, "/prometheus/api/v1/query", http.StatusPermanentRedirect)
		case assert.NotEmpty(t, r.FormValue("query")) && assert.Equal(t, "Bearer token", r.Header.Get("Authorization")):
			_, _ = io.WriteString(w, body)
		}
	}))
	defer server.Close()
	client := ", httpClientConfig: {authorization: {credentials: token}}}"
	servers, err := promapi.LoadServers(write(t, filepath.Join(t.TempDir(), "servers.yaml"),
		"servers: [{address: '"+server.URL+"/away'"+client+", {address: '"+server.URL+"/moved'"+client+"]"))
	require.NoError(t, err)
	sink := asking(t, servers, server.URL+"/away")
	assert.Contains(t, sink.LastSourceError(), "it redirects to ")
	assert.Empty(t, asked)
	sink = asking(t, servers, server.URL+"/moved")
	assert.Equal(t, []float64{1, 2}, sink.values("a"))
	assert.Empty(t, sink.LastSourceError())
}

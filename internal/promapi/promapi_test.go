package promapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/share"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestLoadServersRejects(t *testing.T) {
	tests := map[string]struct {
		file string
		want []string
	}{
		"no YAML": {"servers: [", []string{"file.yaml: "}},
		"unknown field": {"allowUnlisted: true",
			[]string{`unknown field "allowUnlisted"`, "must be servers, a list of address"}},
		"unknown field below": {
			"servers: [{address: 'http://p', tls: {}}]", []string{`unknown field "tls"`},
		},
		"wrong type":      {"servers: 1", []string{"servers", "must be servers, a list of address"}},
		"address missing": {"servers: [{}]", []string{`servers[0].address: "": must be an http or https URL`}},
		"all that is wrong": {
			"servers: [{address: 'ftp://p'}, {address: 'http://u:geheim@p'}, {address: 'http://p'}, {address: 'HTTP://p/'}]",
			[]string{`servers[0].address: "ftp://p": must be`, `servers[1].address: "…@p": must be`,
				`servers[3].address: "http://p": must be listed once`},
		},
		"unknown field of the client": {
			"servers: [{address: 'http://p', httpClientConfig: {bearer: x}}]",
			[]string{"servers[0].httpClientConfig: ", "bearer"},
		},
		"no label": {"servers: [{address: 'http://p', namespaceLabel: ''}]",
			[]string{`servers[0].namespaceLabel: "": must be the name of a label`}},
		"the metric's name as a label": {
			"servers: [{address: 'http://p', namespaceLabel: __name__}]",
			[]string{`servers[0].namespaceLabel: "__name__": must be the name of a label`},
		},
		"no namespace": {
			"servers: [{address: 'http://p', unlabelledNamespace: Shop}]",
			[]string{`servers[0].unlabelledNamespace: "Shop": must be the name of a namespace, or empty`},
		},
		"two ways to authenticate": {
			"servers: [{address: 'http://p', httpClientConfig: {basic_auth: {username: u}, authorization: {credentials: c}}}]",
			[]string{"servers[0].httpClientConfig: at most one of basic_auth, oauth2 & authorization must be configured"},
		},
		"no such CA": {
			"servers: [{address: 'https://p', httpClientConfig: {tls_config: {ca_file: missing.crt}}}]",
			[]string{"servers[0].httpClientConfig: ", "missing.crt"},
		},
		"a reference to nowhere": {
			"servers: [{address: 'https://p', httpClientConfig: {authorization: {credentials_ref: x}}}]",
			[]string{"servers[0].httpClientConfig: "},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := LoadServers(write(t, filepath.Join(t.TempDir(), "file.yaml"), test.file))
			require.Error(t, err)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "geheim")
		})
	}
	_, err := LoadServers(filepath.Join(t.TempDir(), "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestCredentialsAreSentToTheirAddressOnly(t *testing.T) {
	both, err := LoadServers(write(t, filepath.Join(t.TempDir(), "file.yaml"), `{servers: [
	{address: 'http://prometheus:9090/', httpClientConfig: {basic_auth: {username: u, password: p}}}, {address: 'https://other'}]}`))
	require.NoError(t, err)
	assert.NotNil(t, both.configOf("http://prometheus:9090").BasicAuth)
	assert.Nil(t, both.configOf("http://prometheus:9090/path").BasicAuth)
	assert.Nil(t, both.configOf("https://prometheus:9090").BasicAuth)
	assert.True(t, both.configOf("https://other").FollowRedirects, "the library's defaults")
}

// A server that the operator does not list is refused when its name turns out to lead to the node,
// and without a list of unlisted ones before anything is asked.
func TestUnlistedServersOnTheNodeAreRefused(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	ask := func(servers *Servers, address string) error {
		api, err := NewClients(Options{Servers: servers, MaxSeries: 1, MaxBytes: 1 << 20}).API(address)
		if err != nil {
			return err
		}
		_, err = (&Question{Address: address, Query: "up", Timeout: time.Minute}).Vector(t.Context(), api, time.Time{})
		return err
	}
	local := []string{server.URL, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port,
		"http://0.0.0.0:" + port}
	for _, address := range local {
		require.EqualError(t, ask(&Servers{}, address),
			fmt.Sprintf("address: %q: the operator lists no servers", address))
	}
	for _, address := range append(local, "http://169.254.169.254", "http://[fe80::1]", "http://[fd00:ec2::254]") {
		assert.ErrorContains(t, ask(&Servers{AllowUnlisted: true}, address), "address: must be listed by the operator",
			address)
	}
	assert.Zero(t, asked)
	listed := &Servers{}
	for _, address := range local {
		listed.List(address)
		require.NoError(t, ask(listed, address))
	}
	assert.Equal(t, len(local), asked)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestLimiterRejectsAnnouncedLength(t *testing.T) {
	next := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{ContentLength: 11, Body: io.NopCloser(strings.NewReader("01234567890"))}, nil
	})
	asked := context.WithValue(t.Context(), askingKey{}, &asking{})
	r, err := http.NewRequestWithContext(asked, http.MethodGet, "http://prometheus:9090", nil)
	require.NoError(t, err)
	_, err = newLimiter(next, &Options{MaxBytes: 10}, share.NewPool(1<<20, 0)).RoundTrip(r) //nolint:bodyclose // there is none
	require.ErrorAs(t, err, new(*sizeError))
	response, err := newLimiter(next, &Options{MaxBytes: 11}, share.NewPool(1<<20, 0)).RoundTrip(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "01234567890", string(text))
}

func TestShort(t *testing.T) {
	assert.Equal(t, "a b � c", Short(" a\n\tb \xff c"))
	assert.Len(t, []rune(Short(strings.Repeat("x", 999))), 301)
	assert.Equal(t, `"a", "b", "c", 1 more`, Some([]string{"a", "b", "c", "d"}))
	assert.Equal(t, fmt.Sprintf("%q", strings.Repeat("x", 100)), Some([]string{strings.Repeat("x", 200)}))
}

func TestClients(t *testing.T) {
	servers, err := LoadServers(write(t, filepath.Join(t.TempDir(), "file.yaml"),
		"servers: [{address: 'http://prometheus:9090'}]"))
	require.NoError(t, err)
	c := NewClients(Options{Servers: servers, MaxSeries: 1, MaxBytes: 1})
	one, err := c.API("http://prometheus:9090")
	require.NoError(t, err)
	same, err := c.API("HTTP://Prometheus:9090/")
	require.NoError(t, err)
	assert.Same(t, one, same)
	_, err = c.API("http://other")
	require.EqualError(t, err, `address: "http://other": must be listed by the operator: "http://prometheus:9090"`)
	_, err = c.API("http://me:geheim@prometheus:9090")
	require.ErrorContains(t, err, `address: "…@prometheus:9090": must be an http or https URL`)
}

// fakeAPI answers every query alike, and keeps the last one.
type fakeAPI struct {
	v1.API
	answer model.Value
	query  string
	left   time.Duration // until the deadline
}

func (f *fakeAPI) Query(ctx context.Context, query string, _ time.Time, _ ...v1.Option) (model.Value, v1.Warnings,
	error) {
	deadline, _ := ctx.Deadline()
	f.query, f.left = query, time.Until(deadline)
	return f.answer, v1.Warnings{"partial"}, nil
}

func (f *fakeAPI) QueryRange(ctx context.Context, query string, _ v1.Range, o ...v1.Option) (model.Value, v1.Warnings,
	error) {
	return f.Query(ctx, query, time.Time{}, o...)
}

func TestQuestions(t *testing.T) {
	q := Question{Address: "http://p", Query: "load", Accepted: "must be a selector", Timeout: time.Hour, MaxSeries: 1}
	f := &fakeAPI{answer: model.Matrix{{}}}
	matrix, _, err := q.Range(t.Context(), f, v1.Range{})
	require.NoError(t, err)
	assert.Len(t, matrix, 1)
	assert.Greater(t, f.left, 30*time.Minute)
	assert.LessOrEqual(t, f.left, time.Hour)

	_, warnings, err := q.Samples(t.Context(), f, 2500*time.Millisecond)
	require.NoError(t, err)
	assert.Equal(t, v1.Warnings{"partial"}, warnings)
	assert.Equal(t, "load\n[3s]", f.query)

	_, err = q.Vector(t.Context(), f, time.Time{})
	require.EqualError(t, err, `http://p: query "load": the answer is a matrix; must be a selector`)
	f.answer = model.Vector{{}, {}}
	_, err = q.Vector(t.Context(), f, time.Time{})
	require.EqualError(t, err, `http://p: query "load" returns more than 1 series; it must select less`)
	q.MaxSeries = 0
	vector, err := q.Vector(t.Context(), f, time.Time{})
	require.NoError(t, err)
	assert.Len(t, vector, 2)
}

func TestWholeSeconds(t *testing.T) {
	assert.Equal(t, 3*time.Second, wholeSeconds(2500*time.Millisecond))
	assert.Equal(t, 3*time.Second, wholeSeconds(3*time.Second))
}

// sleepyBody yields a megabyte after a pause, whether or not the request has ended by then.
type sleepyBody struct{ pause time.Duration }

func (b *sleepyBody) Read(p []byte) (int, error) {
	if b.pause == 0 {
		return 0, io.EOF
	}
	time.Sleep(b.pause)
	b.pause = 0
	return copy(p, strings.Repeat(" ", 1<<20)), nil
}

func (*sleepyBody) Close() error { return nil }

// client_golang returns at the timeout of a question while its goroutine still reads the answer.
func TestAnswersThatComeTooLateTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewConnector(Options{MaxBytes: 1 << 30,
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Request: r, ContentLength: -1,
					Body: &sleepyBody{2 * time.Second}}, nil
			})})
		client, err := c.Connect("http://prometheus:9090")
		require.NoError(t, err)
		q := Question{Address: "http://prometheus:9090", Query: "load", Timeout: time.Second}
		_, err = q.Vector(t.Context(), client.API, time.Time{})
		require.Error(t, err)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Zero(t, c.InUse())
	})
}

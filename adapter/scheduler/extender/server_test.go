package extender

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/foresail/foresail/internal/servertls/servertlstest"
)

// serve runs a server until the test ends, and returns its URL.
func serve(t *testing.T, o ServerOptions, h http.Handler) string {
	t.Helper()
	o.Address = "127.0.0.1:0"
	server, err := NewServer(o, h)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	return "https://" + server.Addr().String()
}

func clientOf(config *tls.Config) *http.Client {
	return &http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
}

func anyServer() *http.Client { return clientOf(&tls.Config{InsecureSkipVerify: true}) }

// post sends what a scheduler sends, reads the answer into result, and returns the version of HTTP.
func post(t *testing.T, c *http.Client, url string, args, result any) (major int) {
	t.Helper()
	body, err := json.Marshal(args)
	require.NoError(t, err)
	response, err := c.Post(url, "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", content)
	require.NoError(t, json.Unmarshal(content, result))
	assert.EqualValues(t, len(content), response.ContentLength)
	return response.ProtoMajor
}

func argsOf(pod *corev1.Pod, names ...string) extenderv1.ExtenderArgs {
	return extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names}
}

func TestHTTP2UsesOneConnection(t *testing.T) {
	doomed := testNode("doomed", 1, 1)
	doomed.removing = "workers"
	r := newRig(DefaultRules(),
		testSnapshot(testNode("half", 1.6, 2), testNode("full", 1, 15), doomed, testNode("idle", 0, 0)))
	url := serve(t, ServerOptions{}, r.Handler())
	client := anyServer()
	for range 10 {
		var filtered extenderv1.ExtenderFilterResult
		major := post(t, client, url+Prefix+"/filter", argsOf(testPod(), "idle", "full", "half", "doomed"), &filtered)
		assert.Equal(t, 2, major)
		assert.Equal(t, []string{"idle", "half"}, *filtered.NodeNames)
		assert.Equal(t, extenderv1.FailedNodesMap{
			"full":   "foresail: other nodes have room",
			"doomed": "foresail: node is being removed",
		}, filtered.FailedAndUnresolvableNodes)
		assert.Empty(t, filtered.FailedNodes)
		assert.Empty(t, filtered.Error)

		var scores extenderv1.HostPriorityList
		post(t, client, url+Prefix+"/prioritize", argsOf(testPod(), "idle", "half"), &scores)
		assert.Equal(t, extenderv1.HostPriorityList{{Host: "idle", Score: 8}, {Host: "half", Score: 10}}, scores)
	}
	assert.Equal(t, 1.0, testutil.ToFloat64(r.handler.telemetry.connections))
	client.CloseIdleConnections()
	var scores extenderv1.HostPriorityList
	post(t, client, url+Prefix+"/prioritize", argsOf(testPod(), "idle"), &scores)
	assert.Equal(t, 2.0, testutil.ToFloat64(r.handler.telemetry.connections))
}

func TestHTTP1KeepsItsConnection(t *testing.T) {
	r := newRig(DefaultRules(), testSnapshot(testNode("a", 1, 1)))
	url := serve(t, ServerOptions{}, r.Handler())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true,
		NextProtos: []string{"http/1.1"}}}}
	names := make([]string, 1000) // an answer that is too long to be given its length by the library
	for i := range names {
		names[i] = "a"
	}
	for range 5 {
		var scores extenderv1.HostPriorityList
		major := post(t, client, url+Prefix+"/prioritize", argsOf(testPod(), names...), &scores)
		assert.Equal(t, 1, major)
		assert.Len(t, scores, len(names))
	}
	assert.Equal(t, 1.0, testutil.ToFloat64(r.handler.telemetry.connections))
}

// keyPair writes a certificate with its key, and returns their files and the certificate.
func keyPair(t *testing.T, dir, name string) (certFile, keyFile string, content []byte) {
	t.Helper()
	content, key, err := cert.GenerateSelfSignedCertKey(name, []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	require.NoError(t, os.WriteFile(certFile, content, 0o600))
	require.NoError(t, os.WriteFile(keyFile, key, 0o600))
	return certFile, keyFile, content
}

// authorityFile writes the certificate of an authority.
func authorityFile(t *testing.T, a *servertlstest.Authority) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "authorities")
	require.NoError(t, os.WriteFile(file, a.PEM, 0o600))
	return file
}

func TestRejectsServerOptions(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, _ := keyPair(t, dir, "server")
	_, otherKey, _ := keyPair(t, dir, "other")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	names := []string{DefaultClientName}
	for name, test := range map[string]struct {
		options ServerOptions
		field   string
	}{
		"no such address":       {ServerOptions{Address: "127.0.0.1"}, "Address"},
		"an address in use":     {ServerOptions{Address: taken.Addr().String()}, "Address"},
		"a key alone":           {ServerOptions{KeyFile: keyFile}, "CertFile"},
		"a certificate alone":   {ServerOptions{CertFile: certFile}, "KeyFile"},
		"no such certificate":   {ServerOptions{CertFile: dir + "/none", KeyFile: keyFile}, "CertFile"},
		"the key of another":    {ServerOptions{CertFile: certFile, KeyFile: otherKey}, "CertFile"},
		"no such authorities":   {ServerOptions{ClientCAFile: dir + "/none", ClientNames: names}, "ClientCAFile"},
		"authorities are a key": {ServerOptions{ClientCAFile: keyFile, ClientNames: names}, "ClientCAFile"},
		"no names":              {ServerOptions{ClientCAFile: certFile}, "ClientNames"},
		"a wildcard":            {ServerOptions{ClientCAFile: certFile, ClientNames: []string{"*.svc"}}, "ClientNames"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.options.Address == "" {
				test.options.Address = "127.0.0.1:0"
			}
			_, err := NewServer(test.options, http.NotFoundHandler())
			wrong := &OptionError{}
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, test.field, wrong.Field)
			assert.ErrorContains(t, err, test.field+" is ")
			assert.ErrorContains(t, err, ": want ")
		})
	}
}

func poolOf(t *testing.T, content []byte) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(content))
	return pool
}

// showsSoon dials until the certificate that is shown is the desired one.
func showsSoon(t *testing.T, url string, want []byte) {
	t.Helper()
	assert.Eventually(t, func() bool {
		connection, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"),
			&tls.Config{RootCAs: poolOf(t, want), ServerName: "127.0.0.1"})
		if err == nil {
			connection.Close()
		}
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
}

func TestCertificatesAreReloaded(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, content := keyPair(t, dir, "server")
	url := serve(t, ServerOptions{CertFile: certFile, KeyFile: keyFile}, http.NotFoundHandler())
	showsSoon(t, url, content)

	otherCert, otherKey, other := keyPair(t, dir, "other")
	require.NoError(t, os.Rename(otherKey, keyFile))
	require.NoError(t, os.Rename(otherCert, certFile))
	showsSoon(t, url, other)
}

func TestRequiresClientCertificates(t *testing.T) {
	ours, other := servertlstest.NewAuthority(t, "ours"), servertlstest.NewAuthority(t, "other")
	authorities := authorityFile(t, ours)
	r := newRig(DefaultRules(), testSnapshot(testNode("a", 1, 1)))
	o := ServerOptions{ClientCAFile: authorities, ClientNames: []string{DefaultClientName}}
	url := serve(t, o, r.Handler()) + Prefix + "/filter"
	clientAs := func(a *servertlstest.Authority, name string) *http.Client {
		config := a.Client(t, servertlstest.Leaf(x509.ExtKeyUsageClientAuth, name))
		config.InsecureSkipVerify = true
		return clientOf(config)
	}
	var result extenderv1.ExtenderFilterResult
	post(t, clientAs(ours, DefaultClientName), url, argsOf(testPod(), "a"), &result)
	assert.Equal(t, []string{"a"}, *result.NodeNames)

	refuses := func(c *http.Client) bool {
		defer c.CloseIdleConnections()
		response, err := c.Post(url, "application/json", strings.NewReader("{}"))
		if err == nil {
			response.Body.Close()
		}
		return err != nil
	}
	assert.True(t, refuses(anyServer()), "a client without a certificate")
	assert.True(t, refuses(clientAs(ours, "keda-operator")), "another client of the authority")
	stranger := clientAs(other, DefaultClientName)
	assert.True(t, refuses(stranger), "a client of another authority")

	require.NoError(t, os.WriteFile(authorities+"~", other.PEM, 0o600))
	require.NoError(t, os.Rename(authorities+"~", authorities))
	assert.Eventually(t, func() bool { return !refuses(stranger) }, 30*time.Second, 20*time.Millisecond)
}

func TestShutdownFinishesRequests(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = io.WriteString(w, "answer")
	})
	server, err := NewServer(ServerOptions{Address: "127.0.0.1:0"}, slow)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	client := anyServer()
	answers := make(chan string, 1)
	go func() {
		response, err := client.Get("https://" + server.Addr().String())
		if err != nil {
			answers <- err.Error()
			return
		}
		defer response.Body.Close()
		content, _ := io.ReadAll(response.Body)
		answers <- string(content)
	}()
	<-arrived
	cancel()
	assert.Eventually(t, func() bool { // it takes no more connections
		connection, err := net.Dial("tcp", server.Addr().String())
		if err == nil {
			connection.Close()
		}
		return err != nil
	}, 10*time.Second, 5*time.Millisecond)
	close(release)
	assert.Equal(t, "answer", <-answers)
	assert.NoError(t, <-done)
	response, err := client.Get("https://" + server.Addr().String())
	if err == nil {
		response.Body.Close()
	}
	assert.Error(t, err)
}

func TestStopBeforeStart(t *testing.T) {
	server, err := NewServer(ServerOptions{Address: "127.0.0.1:0"}, http.NotFoundHandler())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, server.Run(ctx))
}

func TestBrokenListenerStopsTheServer(t *testing.T) {
	server, err := NewServer(ServerOptions{Address: "127.0.0.1:0"}, http.NotFoundHandler())
	require.NoError(t, err)
	require.NoError(t, server.listener.Close())
	assert.ErrorContains(t, server.Run(t.Context()), "serve the scheduler extender on 127.0.0.1:")
}

func TestFailedConnectionsAreLoggedOnceAMinute(t *testing.T) {
	var log bytes.Buffer
	now := noon
	f := newFailures(func() time.Time { return now })
	f.log = logTo(&log)
	const failure = "http: TLS handshake error from 10.0.0.1:33: tls: failed to verify certificate\n"
	for _, step := range []struct {
		after       time.Duration
		line        string
		warn, count int
	}{
		{0, "http: TLS handshake error from 10.0.0.1:33: EOF\n", 0, 0},
		{0, "http2: received GOAWAY\n", 0, 0},
		{0, failure, 1, 1},
		{time.Minute - 1, failure, 1, 2},
		{time.Minute, failure, 2, 3},
		{time.Minute + 1, failure, 2, 4},
	} {
		now = noon.Add(step.after)
		n, err := f.Write([]byte(step.line))
		require.NoError(t, err)
		assert.Equal(t, len(step.line), n)
		assert.Equal(t, step.warn, strings.Count(log.String(), "A connection to the scheduler extender failed"),
			log.String())
		assert.InDelta(t, step.count, testutil.ToFloat64(f.count), 0)
	}
	assert.Equal(t, 2, strings.Count(log.String(), `"level"=4`))
	assert.Contains(t, log.String(), "failed to verify certificate")
}

func TestClientsWithoutACertificateAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	authorities := authorityFile(t, servertlstest.NewAuthority(t, "ours"))
	o := ServerOptions{ClientCAFile: authorities, ClientNames: []string{DefaultClientName}, Registry: registry}
	url := serve(t, o, http.NotFoundHandler())
	response, err := anyServer().Get(url)
	if err == nil {
		response.Body.Close()
	}
	require.Error(t, err)
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		families, err := registry.Gather()
		require.NoError(c, err)
		require.Len(c, families, 1)
		assert.Equal(c, "foresail_tls_failures_total", families[0].GetName())
		assert.GreaterOrEqual(c, families[0].GetMetric()[0].GetCounter().GetValue(), 1.0)
	}, 10*time.Second, 10*time.Millisecond)

	_, err = NewServer(ServerOptions{Address: "127.0.0.1:0", Registry: registry}, http.NotFoundHandler())
	assert.ErrorContains(t, err, "duplicate")
}

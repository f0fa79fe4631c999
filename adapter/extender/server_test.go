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
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// serve runs a server until the test ends, and returns its URL.
func serve(t *testing.T, o ServerOptions, h http.Handler) string {
	t.Helper()
	o.Address = "127.0.0.1:0"
	server, err := NewServer(o, h, nil)
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
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
}

func anyServer() *http.Client { return clientOf(&tls.Config{InsecureSkipVerify: true}) }

// post sends what a scheduler sends, and reads the answer into result.
func post(t *testing.T, c *http.Client, url string, args, result any) *http.Response {
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
	return response
}

func argsOf(pod *corev1.Pod, names ...string) extenderv1.ExtenderArgs {
	return extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names}
}

func TestASchedulerIsAnsweredOnOneConnection(t *testing.T) {
	doomed := testNode("doomed", 1, 1)
	doomed.removing = "workers"
	r := newRig(DefaultRules(), testView(testNode("half", 1.6, 2), testNode("full", 1, 15), doomed, testNode("idle", 0, 0)))
	url := serve(t, ServerOptions{}, r.Handler())
	client := anyServer()
	for range 10 {
		var filtered extenderv1.ExtenderFilterResult
		response := post(t, client, url+Prefix+"/filter", argsOf(testPod(), "idle", "full", "half", "doomed"), &filtered)
		assert.Equal(t, 2, response.ProtoMajor)
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
	assert.Equal(t, 1.0, testutil.ToFloat64(r.door.telemetry.connections))
	client.CloseIdleConnections()
	var scores extenderv1.HostPriorityList
	post(t, client, url+Prefix+"/prioritize", argsOf(testPod(), "idle"), &scores)
	assert.Equal(t, 2.0, testutil.ToFloat64(r.door.telemetry.connections))
}

func TestASchedulerOfHTTP1KeepsItsConnection(t *testing.T) {
	r := newRig(DefaultRules(), testView(testNode("a", 1, 1)))
	url := serve(t, ServerOptions{}, r.Handler())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}}}
	names := make([]string, 1000) // an answer that is too long to be given its length by the library
	for i := range names {
		names[i] = "a"
	}
	for range 5 {
		var scores extenderv1.HostPriorityList
		response := post(t, client, url+Prefix+"/prioritize", argsOf(testPod(), names...), &scores)
		assert.Equal(t, 1, response.ProtoMajor)
		assert.Len(t, scores, len(names))
	}
	assert.Equal(t, 1.0, testutil.ToFloat64(r.door.telemetry.connections))
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

func TestServerOptionsThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, _ := keyPair(t, dir, "server")
	_, otherKey, _ := keyPair(t, dir, "other")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
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
		"no such authorities":   {ServerOptions{ClientCAFile: dir + "/none"}, "ClientCAFile"},
		"authorities are a key": {ServerOptions{ClientCAFile: keyFile}, "ClientCAFile"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.options.Address == "" {
				test.options.Address = "127.0.0.1:0"
			}
			_, err := NewServer(test.options, http.NotFoundHandler(), nil)
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

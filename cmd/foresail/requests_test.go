package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/test/env/controlplane"
)

// requestCounter passes the requests of anyone on to an API server, as an administrator, and counts
// those for all objects of a kind by their paths. One that the API server rejects is not counted:
// an API server that has just started asks clients to try again.
type requestCounter struct {
	*httptest.Server
	mu    sync.Mutex
	paths map[string]int
}

func countRequests(t *testing.T, cluster *controlplane.Cluster) *requestCounter {
	t.Helper()
	to, err := url.Parse(cluster.URL())
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, err = rest.TransportFor(cluster.RESTConfig())
	require.NoError(t, err)
	proxy.FlushInterval, proxy.ErrorLog = -1, log.New(io.Discard, "", 0)
	c := &requestCounter{paths: map[string]int{}}
	proxy.ModifyResponse = func(answer *http.Response) error {
		if r := answer.Request; answer.StatusCode == http.StatusOK && r.URL.Query().Get("labelSelector") == "" {
			c.mu.Lock()
			c.paths[r.URL.Path]++
			c.mu.Unlock()
		}
		return nil
	}
	c.Server = httptest.NewServer(proxy)
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

func (c *requestCounter) answered(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paths[path]
}

func (c *requestCounter) kubeconfig(t *testing.T) string {
	t.Helper()
	return clitest.File(t, "kubeconfig", `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": "`+c.URL+`"}}], "users": [{"name": "u", "user": {}}]}`)
}

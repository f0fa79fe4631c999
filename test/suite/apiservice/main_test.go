// Package apiservice has real replicas of Foresail register themselves with a real aggregator,
// which verifies their certificates: beside another server, through renewals, and until they are
// uninstalled.
package apiservice

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	externalmetrics "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/stack"
	"github.com/foresail/foresail/test/suite/permissions/rbac"
)

// patience is how long anything is waited for, on a crowded machine.
const patience = 2 * time.Minute

var (
	shared *stack.Stack
	binary foresail.Binary
	app    = stack.App{
		Namespace: "shop", Name: "checkout", Metric: "predicted_load_total", Replicas: 2, Min: 2, Max: 4,
		ServiceTime: 40 * time.Millisecond, Threshold: resource.MustParse("700m"),
	}
)

func TestMain(m *testing.M) {
	controlplane.Main(func(ctx context.Context) (int, error) { return runWithStack(ctx, m) })
}

func runWithStack(ctx context.Context, m *testing.M) (code int, err error) {
	if binary, err = foresail.Build(ctx, os.Stderr); err != nil {
		return 1, err
	}
	if shared, err = stack.Start(ctx, stack.Options{Progress: os.Stderr, ReadyDelay: time.Second, Seed: 1,
		AuditPolicy: rbac.Policy}); err != nil {
		return 1, err
	}
	defer func() {
		if closed := shared.Close(); err == nil {
			err = closed
		}
	}()
	if err := shared.Deploy(ctx, app); err != nil {
		return 1, err
	}
	return rbac.Run(m, "test/suite/apiservice", shared.Cluster)
}

// front passes connections on to replicas in turn, as a Service does. It has the port that the
// APIService names, as the replicas have one address here and need different ports.
type front struct {
	listener net.Listener
	backends atomic.Pointer[[]string]
	next     atomic.Int64
	open     sync.WaitGroup
}

func startFront(t *testing.T) *front {
	t.Helper()
	address, err := ports.TakeAddress()
	require.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	f := &front{listener: listener}
	f.lead()
	ctx, cancel := context.WithCancel(context.Background())
	f.open.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			f.open.Go(func() { f.pass(ctx, connection) })
		}
	})
	t.Cleanup(func() {
		cancel()
		require.NoError(t, listener.Close())
		f.open.Wait()
	})
	return f
}

// lead says where new connections go.
func (f *front) lead(to ...string) { f.backends.Store(&to) }

func (f *front) port() int { return f.listener.Addr().(*net.TCPAddr).Port }

func (f *front) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	backends := *f.backends.Load()
	if len(backends) == 0 {
		return
	}
	server, err := new(net.Dialer).DialContext(ctx, "tcp", backends[int(f.next.Add(1))%len(backends)])
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
		both.Go(func() {
			_, _ = io.Copy(to, from)
			_, _ = to.Close(), from.Close()
		})
	}
	both.Wait()
}

// replica is a running Foresail that signs its own certificate.
type replica struct {
	*foresail.Process
	secure string // host:port
}

// start runs a replica under the service account of the manifests until the test ends, and waits
// until it is ready.
func start(t *testing.T, name string, f *front, flags ...string) *replica {
	t.Helper()
	own, port, err := foresail.SigningAdapterFlags(t.Context(), shared.Cluster)
	require.NoError(t, err)
	own = append(append(own, "--apiservice-service", fmt.Sprintf("%s:%d", foresail.ServiceName, f.port())), flags...)
	r := &replica{
		Process: foresail.StartFor(t, foresail.Options{Name: name, Binary: binary, Dir: folder(t, name), Flags: own}),
		secure:  ports.Loopback(port),
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	require.NoError(t, r.WaitReady(ctx))
	return r
}

func folder(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(shared.Cluster.Dir(), t.Name(), name)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}

func reader(t *testing.T) externalmetrics.ExternalMetricsClient {
	t.Helper()
	config := shared.Cluster.RESTConfig()
	config.QPS = -1
	client, err := externalmetrics.NewForConfig(config)
	require.NoError(t, err)
	return client
}

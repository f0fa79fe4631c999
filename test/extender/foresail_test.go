package extender

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/controlplane"
	"github.com/foresail/foresail/test/ports"
	"github.com/foresail/foresail/test/stack"
)

// foresail is a process with the extender.
type foresail struct {
	*controlplane.Process
	t        *testing.T
	args     []string
	log      string
	address  string // of the extender: host:port
	probe    *probe
	httpPort int
}

var foresails atomic.Int64

// startPools starts the process that runs the WorkerPools of all tests. Were it one of each test, the end of one would leave the
// pools of others without a leader until the lease expires.
func startPools(ctx context.Context) (*controlplane.Process, error) {
	program, err := binary()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := cluster.KubeconfigForServiceAccount(ctx, stack.Namespace, stack.ServiceAccount)
	if err != nil {
		return nil, err
	}
	return controlplane.StartProcess("pools", program, filepath.Join(cluster.Dir(), "pools.log"), home(), []string{
		"run", "--enable", "nodepool", "--kubeconfig", kubeconfig, "--http-address", "127.0.0.1:0",
	})
}

// startForesail starts a process with the extender, as the manifests would, and waits until it is ready.
func startForesail(t *testing.T, flags ...string) *foresail {
	t.Helper()
	kubeconfig, err := cluster.KubeconfigForServiceAccount(t.Context(), stack.Namespace, stack.ServiceAccount)
	require.NoError(t, err)
	port, err := ports.Take()
	require.NoError(t, err)
	httpPort, err := ports.Take()
	require.NoError(t, err)
	cert, key, err := cluster.ServingCertificate("127.0.0.1", "localhost")
	require.NoError(t, err)
	f := &foresail{t: t, httpPort: httpPort, address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	f.log = filepath.Join(cluster.Dir(), fmt.Sprintf("foresail-%d.log", foresails.Add(1)))
	f.args = append([]string{
		"run", "--enable", "extender", "--kubeconfig", kubeconfig, "--http-address", net.JoinHostPort("127.0.0.1", strconv.Itoa(httpPort)),
		"--extender-address", f.address, "--extender-tls-cert-file", cert, "--extender-tls-private-key-file", key,
	}, flags...)
	f.probe = newProbe(t, f.address, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(httpPort)))
	f.start()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("foresail: " + f.LogTail())
		}
		require.NoError(t, f.Stop(stopDeadline))
	})
	return f
}

// start starts the process, again at the same addresses if there was one, and waits until it is ready.
func (f *foresail) start() {
	f.t.Helper()
	program, err := binary()
	require.NoError(f.t, err)
	f.Process, err = controlplane.StartProcess("foresail", program, f.log, home(), f.args)
	require.NoError(f.t, err)
	deadline := time.Now().Add(patience)
	for {
		code, body := f.get("/readyz")
		if code == http.StatusOK {
			return
		}
		select {
		case <-f.Ended():
			require.NoError(f.t, f.Failure())
		case <-time.After(50 * time.Millisecond):
		}
		require.True(f.t, time.Now().Before(deadline), "foresail is not ready: %s\n%s", body, f.LogTail())
	}
}

// kill ends the process as a crash would.
func (f *foresail) kill() {
	f.t.Helper()
	require.NoError(f.t, f.Stop(0))
}

// get reads a path of the HTTP port; 0 if nobody answers.
func (f *foresail) get(path string) (code int, body string) {
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", f.httpPort, path), nil)
	require.NoError(f.t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

// metrics reads what the process tells of itself.
func (f *foresail) metrics() map[string]*dto.MetricFamily {
	f.t.Helper()
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", f.httpPort))
	require.NoError(f.t, err)
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(f.t, err)
	return families
}

// value sums the series of a family that have the given labels, as name, value, name, value.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	sum := 0.0
	for _, metric := range families[name].GetMetric() {
		has := map[string]string{}
		for _, label := range metric.GetLabel() {
			has[label.GetName()] = label.GetValue()
		}
		match := true
		for i := 0; i+1 < len(labels); i += 2 {
			match = match && has[labels[i]] == labels[i+1]
		}
		if match {
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

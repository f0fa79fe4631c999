package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/controlplane"
	"github.com/foresail/foresail/test/ports"
)

var (
	binary   = flag.String("foresail", "", "measure this foresail binary; empty builds one from the source")
	profiles = flag.String("profiles", "", "folder to write CPU and heap profiles of foresail to; it is built with a server of profiles then")
)

// Where the manifests put the adapter, and who it is.
const (
	systemNamespace = "foresail-system"
	serviceName     = "foresail"
	serviceAccount  = "foresail"
)

// foresail is a running foresail process.
type foresail struct {
	*controlplane.Process
	securePort int
	http       string // address of /metrics
	push       string // address that remote write is taken on
	pprof      string // address of profiles, empty for none
}

// startForesail runs foresail under the service account of the manifests until the benchmark ends. procs bounds the
// cores it may use at a time; 0 is all of them.
func startForesail(b *testing.B, c *controlplane.Cluster, procs int, args ...string) *foresail {
	b.Helper()
	kubeconfig, err := c.KubeconfigForServiceAccount(b.Context(), systemNamespace, serviceAccount)
	require.NoError(b, err)
	cert, key, err := c.ServingCertificate(serviceName+"."+systemNamespace+".svc", "localhost")
	require.NoError(b, err)
	securePort, err := ports.Take()
	require.NoError(b, err)
	f := &foresail{securePort: securePort, http: freeAddress(b), push: freeAddress(b)}
	settings := []string{"GODEBUG="}
	if procs > 0 {
		settings = append(settings, "GOMAXPROCS="+strconv.Itoa(procs))
	}
	if *profiles != "" {
		f.pprof = freeAddress(b)
		settings = append(settings, profileEnv+"="+f.pprof)
	}
	command := append(settings, buildForesail(b, c), "run",
		"--kubeconfig", kubeconfig,
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(f.securePort),
		"--tls-cert-file", cert, "--tls-private-key-file", key,
		"--http-address", f.http,
		"--leader-election-namespace", systemNamespace,
		"--remote-write-address", f.push,
	)
	f.Process = startProcess(b, c, "foresail", append(command, args...))
	return f
}

// startProcess runs a command, given as env takes it, until the benchmark ends. env gives way to the command, so that the
// process is the command's.
func startProcess(b *testing.B, c *controlplane.Cluster, name string, command []string) *controlplane.Process {
	b.Helper()
	env, err := exec.LookPath("env")
	require.NoError(b, err)
	p, err := controlplane.StartProcess(name, env, filepath.Join(c.Dir(), name+".log"), b.TempDir(), command)
	require.NoError(b, err)
	b.Cleanup(func() {
		if b.Failed() {
			b.Logf("%s: %s", name, p.LogTail())
		}
		require.NoError(b, p.Stop(20*time.Second))
	})
	return p
}

// profileEnv is the variable with the address at which a build for profiles serves them.
const profileEnv = "FORESAIL_BENCH_PPROF"

// profileServer is added to the command in a build for profiles: the command itself serves none.
const profileServer = `package main

import (
	"net/http"
	_ "net/http/pprof"
	"os"
)

func init() { go http.ListenAndServe(os.Getenv("` + profileEnv + `"), nil) }
`

// buildForesail builds the command into the folder of the cluster and returns where it is.
func buildForesail(b *testing.B, c *controlplane.Cluster) string {
	b.Helper()
	if *binary != "" && *profiles == "" {
		return *binary
	}
	args := []string{"-o", filepath.Join(c.Dir(), "foresail")}
	root, err := controlplane.Root()
	require.NoError(b, err)
	if *profiles != "" {
		args = append(args, "-overlay", overlay(b, filepath.Join(root, "cmd", "foresail", "profile_server.go"), profileServer))
	}
	return buildProgram(b, root, append(args, "./cmd/foresail"))
}

// buildProgram builds what args say, the first two of which are -o and where to.
func buildProgram(b *testing.B, dir string, args []string) string {
	b.Helper()
	build := exec.CommandContext(b.Context(), "go", append([]string{"build"}, args...)...)
	build.Dir = dir
	output, err := build.CombinedOutput()
	require.NoError(b, err, "%s: %s", build, output)
	return args[1]
}

// overlay has the go command take content for a file of the source.
func overlay(b *testing.B, file, content string) string {
	b.Helper()
	dir := b.TempDir()
	replacement, list := filepath.Join(dir, "content.go"), filepath.Join(dir, "overlay.json")
	require.NoError(b, os.WriteFile(replacement, []byte(content), 0o600))
	encoded, err := json.Marshal(map[string]map[string]string{"Replace": {file: replacement}})
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(list, encoded, 0o600))
	return list
}

// waitReady waits until /readyz answers with 200 and every PredictedMetric is served.
func (f *foresail) waitReady(ctx context.Context, metrics int) error {
	last := error(nil)
	for {
		if last = f.ready(ctx, metrics); last == nil {
			return nil
		}
		select {
		case <-f.Ended():
			return f.Failure()
		case <-ctx.Done():
			return fmt.Errorf("foresail is not ready: %w: %w", last, context.Cause(ctx))
		case <-time.After(5 * time.Second): // /metrics is work for it
		}
	}
}

func (f *foresail) ready(ctx context.Context, metrics int) error {
	if _, err := get(ctx, "http://"+f.http+"/readyz"); err != nil {
		return err
	}
	t, err := f.telemetry(ctx)
	if err != nil {
		return err
	}
	if served := t.sum("foresail_forecast_available", nil); int(served) != metrics {
		return fmt.Errorf("%v of %d PredictedMetrics are served", served, metrics)
	}
	return nil
}

// telemetry is one reading of /metrics.
type telemetry map[string]*dto.MetricFamily

func (f *foresail) telemetry(ctx context.Context) (telemetry, error) {
	body, err := get(ctx, "http://"+f.http+"/metrics")
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(body)
	return families, err
}

// sum adds up the counters and gauges of a name that have the labels.
func (t telemetry) sum(name string, labels map[string]string) float64 {
	sum := 0.0
	for _, m := range t[name].GetMetric() {
		if matches(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

func matches(m *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, l := range m.GetLabel() {
		if v, ok := labels[l.GetName()]; ok && v == l.GetValue() {
			found++
		}
	}
	return found == len(labels)
}

// get returns the body of an answer with status 200.
func get(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		why, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return nil, fmt.Errorf("%s: %s: %s", url, response.Status, why)
	}
	return response.Body, nil
}

func freeAddress(b *testing.B) string {
	b.Helper()
	port, err := ports.Take()
	require.NoError(b, err)
	return ports.Loopback(port)
}

package extenderbench

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
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/controlplane"
	"github.com/foresail/foresail/test/ports"
	"github.com/foresail/foresail/test/stack"
)

var (
	binary   = flag.String("foresail", "", "measure this foresail binary; empty builds one from the source")
	profiles = flag.String("profiles", "", "folder to write CPU and heap profiles of foresail to; it is built with a server of profiles then")
)

// foresail is a running foresail process that answers schedulers.
type foresail struct {
	*controlplane.Process
	address string // that schedulers ask
	http    string // address of /metrics
	pprof   string // address of profiles, empty for none
}

// startForesail runs an extender until the benchmark ends, and returns it once it is ready, with how long that took.
func startForesail(b *testing.B, cluster *controlplane.Cluster, program string) (*foresail, time.Duration) {
	b.Helper()
	f := &foresail{address: freeAddress(b), http: freeAddress(b)}
	var settings []string
	if *profiles != "" {
		f.pprof = freeAddress(b)
		settings = append(settings, profileEnv+"="+f.pprof)
	}
	command := append(settings, program, "run", "--enable", "extender",
		"--kubeconfig", cluster.Kubeconfig(), "--http-address", f.http, "--extender-address", f.address)
	env, err := exec.LookPath("env") // gives way to the command
	require.NoError(b, err)
	begun := time.Now()
	f.Process, err = controlplane.StartProcess("foresail", env, filepath.Join(cluster.Dir(), "foresail.log"), b.TempDir(), command)
	require.NoError(b, err)
	b.Cleanup(func() {
		if b.Failed() {
			b.Log(f.LogTail())
		}
		require.NoError(b, f.Stop(20*time.Second))
	})
	require.NoError(b, f.waitReady(b.Context()))
	return f, time.Since(begun)
}

func (f *foresail) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		body, err := get(ctx, "http://"+f.http+"/readyz")
		if err == nil {
			return body.Close()
		}
		select {
		case <-f.Ended():
			return f.Failure()
		case <-ctx.Done():
			return fmt.Errorf("foresail is not ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// readsToForecast is how often the use of nodes is read until there is a forecast of it, and once more for good measure.
const readsToForecast = 6

// waitForecasts waits until nodes are scored by what they are predicted to use.
func (f *foresail) waitForecasts(b *testing.B) {
	b.Helper()
	require.Eventually(b, func() bool {
		t, err := f.telemetry(b.Context())
		return err == nil && t.sum("foresail_node_reads_total") >= readsToForecast
	}, 5*time.Minute, time.Second)
}

// profileEnv names the variable that tells a build for profiles where to serve them.
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

// buildForesail builds the command and returns where it is.
func buildForesail(b *testing.B) string {
	b.Helper()
	if *profiles == "" {
		if *binary != "" {
			return *binary
		}
		program, err := stack.BuildForesail(b.Context(), b.Output())
		require.NoError(b, err)
		return program
	}
	root, err := controlplane.Root()
	require.NoError(b, err)
	dir := b.TempDir()
	content, list := filepath.Join(dir, "content.go"), filepath.Join(dir, "overlay.json")
	require.NoError(b, os.WriteFile(content, []byte(profileServer), 0o600))
	encoded, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, "cmd", "foresail", "profile_server.go"): content}})
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(list, encoded, 0o600))
	program := filepath.Join(dir, "foresail")
	goBuild(b, root, "-overlay", list, "-o", program, "./cmd/foresail")
	return program
}

// goBuild builds in a folder of the repository.
func goBuild(b *testing.B, dir string, args ...string) {
	b.Helper()
	build := exec.CommandContext(b.Context(), "go", append([]string{"build"}, args...)...)
	build.Dir, build.Env = dir, append(os.Environ(), "GOTMPDIR="+b.TempDir(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	output, err := build.CombinedOutput()
	require.NoError(b, err, "%s: %s", build, output)
}

// profile writes a CPU profile of foresail that covers some time, and one of its heap, if profiles are asked for. It
// returns at once; wait ends with the profile.
func (f *foresail) profile(b *testing.B, name string, span time.Duration) (wait func()) {
	b.Helper()
	if *profiles == "" {
		return func() {}
	}
	done := make(chan error)
	go func() {
		err := save(b.Context(), fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", f.pprof, int(span.Seconds())), filepath.Join(*profiles, name+".cpu.pprof"))
		if err == nil {
			err = save(b.Context(), "http://"+f.pprof+"/debug/pprof/heap?gc=1", filepath.Join(*profiles, name+".heap.pprof"))
		}
		done <- err
	}()
	return func() { require.NoError(b, <-done) }
}

func save(ctx context.Context, url, file string) error {
	body, err := get(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// memory is what a process holds of the machine's: now, and at the most since it began.
func memory(b *testing.B, pid int) (now, most uint64) {
	b.Helper()
	p, err := procfs.NewProc(pid)
	require.NoError(b, err)
	status, err := p.NewStatus()
	require.NoError(b, err)
	return status.VmRSS, status.VmHWM
}

// processor is what a process has had of the processors.
func processor(b *testing.B, pid int) time.Duration {
	b.Helper()
	p, err := procfs.NewProc(pid)
	require.NoError(b, err)
	stat, err := p.Stat()
	require.NoError(b, err)
	return time.Duration(stat.CPUTime() * float64(time.Second))
}

// telemetry is what /metrics said.
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

// sum adds up the counters and gauges of a name.
func (t telemetry) sum(name string) float64 {
	sum := 0.0
	for _, m := range t[name].GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum
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

package extenderbench

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/test/env/foresail"
)

// warmCalls are not measured: they find no connection, and code that has not run before.
const warmCalls = 50

// samplesOf are how many names a pod is asked about: what the scheduler samples of 5,000 nodes, and
// all of them.
var samplesOf = []struct{ names, pods int }{{500, 3000}, {nodesOfCrowd, 500}}

var podsOnNode = flag.Int("pods-on-node", 30,
	"how many pods each node has whose memory is measured; answers take no longer for them")

// BenchmarkExtender is foresail with 5,000 nodes and 150,000 pods: what memory it takes, and what
// its answers take as kube-scheduler's own client sees it, and as a plain one does.
func BenchmarkExtender(b *testing.B) {
	program, caller := buildForesail(b), buildCaller(b)
	c := crowd{nodes: nodesOfCrowd, podsOnNode: *podsOnNode, born: time.Now().Add(-time.Hour).Truncate(time.Second)}
	cluster := startSite(b, c)
	f, ready := startForesail(b, cluster, program)
	b.Run("memory", func(b *testing.B) { benchmarkMemory(b, f, ready) })
	f.waitForecasts(b)
	for _, s := range samplesOf {
		b.Run(fmt.Sprintf("client=scheduler/names=%d", s.names),
			func(b *testing.B) { benchmarkScheduler(b, f, c, caller, s.names, s.pods) })
	}
	for _, s := range samplesOf {
		for _, verb := range []string{"filter", "prioritize"} {
			b.Run(fmt.Sprintf("client=plain/%s/names=%d", verb, s.names),
				func(b *testing.B) { benchmarkPlain(b, f, c, verb, s.names, s.pods) })
		}
	}
}

// benchmarkMemory looks after a minute in which the use of nodes has been read four times.
func benchmarkMemory(b *testing.B, f *extenderProcess, ready time.Duration) {
	started := f.MustUsage(b)
	b.ResetTimer()
	wait := f.profile(b, "idle", 55*time.Second)
	time.Sleep(time.Minute)
	wait()
	now := f.MustUsage(b)
	b.StopTimer()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ready.Seconds(), "s-to-ready")
	b.ReportMetric(float64(started.Peak)/mebibyte, "MiB-peak-at-ready")
	b.ReportMetric(float64(now.Resident)/mebibyte, "MiB-resident")
	b.ReportMetric(float64(now.Peak)/mebibyte, "MiB-peak")
	b.ReportMetric(100*(now.CPU-started.CPU).Seconds()/60, "%cpu-idle")
}

const mebibyte = 1 << 20

// buildCaller builds the program that calls as the scheduler does, in the way that the scheduler is
// built: what they share is not compiled again.
func buildCaller(b *testing.B) string {
	b.Helper()
	build := foresail.GoBuild{
		Dir: "test/env/controlplane/components", Package: "./callextender", Output: filepath.Join(b.TempDir(),
			"callextender"),
		Flags: []string{"-trimpath", "-ldflags=-s -w"}, Env: []string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly"},
	}
	require.NoError(b, build.Run(b.Context()))
	return build.Output
}

// spread is how times are spread, in nanoseconds.
type spread struct{ P50, P90, P99, Max float64 }

func benchmarkScheduler(b *testing.B, f *extenderProcess, c crowd, caller string, names, pods int) {
	dir := b.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(b, os.WriteFile(path, content, 0o600))
		return path
	}
	pod, err := json.Marshal(c.unwatched("called"))
	require.NoError(b, err)
	call := exec.CommandContext(b.Context(), caller,
		"-config", write("scheduler.yaml", []byte(schedulerConfig(f.address))),
		"-pod", write("pod.json", pod), "-nodes", write("nodes", []byte(strings.Join(c.names(), "\n"))),
		fmt.Sprintf("-names=%d", names), fmt.Sprintf("-pods=%d", pods), fmt.Sprintf("-warm=%d", warmCalls))
	var stderr bytes.Buffer
	call.Stderr = &stderr
	for range b.N {
		before := f.MustUsage(b)
		wait := f.profile(b, fmt.Sprintf("calls-%d", names), 4*time.Second)
		output, err := call.Output()
		require.NoError(b, err, stderr.String())
		wait()
		asked := float64(pods + warmCalls)
		b.ReportMetric(float64((f.MustUsage(b).CPU-before.CPU).Microseconds())/asked, "cpu-µs/pod")
		b.ReportMetric(float64((call.ProcessState.UserTime()+call.ProcessState.SystemTime()).Microseconds())/asked,
			"scheduler-cpu-µs/pod")
		var told struct {
			Pods, Passed             int
			Filter, Prioritize, Both spread
		}
		require.NoError(b, json.Unmarshal(output, &told))
		b.ReportMetric(0, "ns/op")
		for what, s := range map[string]spread{"filter": told.Filter, "prioritize": told.Prioritize,
			"both": told.Both} {
			report(b, what, s)
		}
		b.ReportMetric(float64(told.Passed)/float64(told.Pods), "names-passed")
		call = again(call)
	}
}

// again is a command that has run, to be run once more.
func again(c *exec.Cmd) *exec.Cmd {
	out := exec.Command(c.Path, c.Args[1:]...)
	out.Stderr = c.Stderr
	return out
}

func report(b *testing.B, what string, s spread) {
	b.Helper()
	b.ReportMetric(s.P50, what+"-p50-ns")
	b.ReportMetric(s.P99, what+"-p99-ns")
	b.ReportMetric(s.Max, what+"-max-ns")
}

// newPod is a pod that no node has yet.
func (c crowd) newPod(name string) *corev1.Pod {
	p := c.pod(0)
	p.Name, p.UID = name, types.UID("uid-of-"+name)
	return p
}

// unwatched is a pod that is in no API. Without a UID it cannot count, and no request waits for it.
func (c crowd) unwatched(name string) *corev1.Pod {
	p := c.newPod(name)
	p.UID = ""
	return p
}

// benchmarkPlain measures from before a request is sent until its answer has been read, without the
// time it takes to write the one and understand the other.
func benchmarkPlain(b *testing.B, f *extenderProcess, c crowd, verb string, names, pods int) {
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // its certificate is made at start
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	all := c.names()
	all = append(all, all...)
	for range b.N {
		var times []float64
		answered := 0
		for i := range warmCalls + pods {
			from := i * names % c.nodes
			sample := all[from : from+names]
			body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: c.unwatched(fmt.Sprintf("%s-%d", verb, i)),
				NodeNames: &sample})
			require.NoError(b, err)
			begun := time.Now()
			answer := post(b, client, "https://"+f.address+extender.Prefix+"/"+verb, body)
			took := time.Since(begun)
			answered = len(answer)
			if i >= warmCalls {
				times = append(times, float64(took.Nanoseconds()))
			}
		}
		slices.Sort(times)
		at := func(share float64) float64 { return times[int(share*float64(len(times)-1))] }
		b.ReportMetric(0, "ns/op")
		report(b, verb, spread{P50: at(0.5), P99: at(0.99), Max: at(1)})
		b.ReportMetric(float64(answered), "B-answered")
	}
}

func post(b *testing.B, client *http.Client, url string, body []byte) []byte {
	b.Helper()
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	require.NoError(b, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	require.Equal(b, http.StatusOK, response.StatusCode, "%s", answer)
	require.Equal(b, 2, response.ProtoMajor)
	return answer
}

package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// watching is set in processes that watch and do nothing else: the address of the API, and
	// whether parts share watches.
	watching = "FORESAIL_TEST_WATCH"

	// The largest cluster that Kubernetes promises to bear.
	largestNodes, largestPods = 5_000, 150_000
	// eventRate is how many pods change each second, for eventSpan.
	eventRate, eventSpan = 2_000, 10 * time.Second
)

// usage is what a process takes.
type usage struct {
	Heap     float64 // bytes that are in use; of the first answer alone
	Resident float64 // bytes
	Peak     float64 // of these
	CPU      float64 // seconds
}

// BenchmarkWatches is what it takes a process with all parts to know the largest cluster and to
// follow its changes: with the watches that they share, and with watches of each part.
func BenchmarkWatches(b *testing.B) {
	for _, mode := range []string{"each with its own", "shared"} {
		b.Run(mode, func(b *testing.B) {
			for b.Loop() {
				measureWatches(b, mode == "shared")
			}
		})
	}
}

func measureWatches(b *testing.B, shared bool) {
	b.Helper()
	api := serveWatched(b, largestNodes, largestPods)
	p := startWatching(b, api.URL, shared)
	start := p.usage(b)
	received, before := float64(api.sent.Load()), p.usage(b)
	for begun, i := time.Now(), 0; i < int(eventSpan.Seconds())*eventRate; i++ {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / eventRate)))
		api.change(i % largestPods)
	}
	time.Sleep(2 * time.Second)
	after := p.usage(b)
	for unit, value := range map[string]float64{
		"watches": float64(api.requested("watch pods") + api.requested("watch nodes")),
		"MB-heap": start.Heap / 1e6, "MB-resident": start.Resident / 1e6, "MB-peak": start.Peak / 1e6,
		"MB-received": received / 1e6,
		"cpu-s/start": start.CPU, "cpu-us/event": (after.CPU - before.CPU) / eventSpan.Seconds() / eventRate * 1e6,
		"B-received/event": (float64(api.sent.Load()) - received) / eventSpan.Seconds() / eventRate,
	} {
		b.ReportMetric(value, unit)
	}
	require.NoError(b, p.commands.Close())
	require.NoError(b, p.command.Wait())
}

// watchingProcess answers each line with what it takes, and ends with its input.
type watchingProcess struct {
	command  *exec.Cmd
	commands io.WriteCloser
	answers  *bufio.Scanner
}

func startWatching(b *testing.B, address string, shared bool) *watchingProcess {
	b.Helper()
	self, err := os.Executable()
	require.NoError(b, err)
	p := &watchingProcess{command: exec.CommandContext(b.Context(), self)}
	p.command.Env = append(os.Environ(), fmt.Sprintf("%s=%s %t", watching, address, shared))
	p.command.Stderr = os.Stderr
	p.commands, err = p.command.StdinPipe()
	require.NoError(b, err)
	answers, err := p.command.StdoutPipe()
	require.NoError(b, err)
	p.answers = bufio.NewScanner(answers)
	require.NoError(b, p.command.Start())
	return p
}

// usage waits until the process knows the cluster.
func (p *watchingProcess) usage(b *testing.B) (u usage) {
	b.Helper()
	_, err := fmt.Fprintln(p.commands, "usage")
	require.NoError(b, err)
	require.True(b, p.answers.Scan(), "it has ended")
	require.NoError(b, json.Unmarshal(p.answers.Bytes(), &u))
	return u
}

func TestMain(m *testing.M) {
	of := os.Getenv(watching)
	if of == "" {
		os.Exit(m.Run())
	}
	if err := watchForOthers(of); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// watchForOthers is the main function of such a process.
func watchForOthers(of string) error {
	if err := limitMemory(context.Background(), os.Getenv); err != nil {
		return err
	}
	address, mode, _ := strings.Cut(of, " ")
	client, err := clientOf(address)
	if err != nil {
		return err
	}
	w, err := newWatchers(client, nextFeeds(client, mode == "true"))
	if err != nil {
		return err
	}
	go w.run(context.Background())
	listed := false
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		for w.startup.StartupTime() == 0 { // the last one to know
			time.Sleep(50 * time.Millisecond)
		}
		u := currentUsage()
		if !listed {
			u.Heap, listed = heapInUse(), true
		}
		if err := json.NewEncoder(os.Stdout).Encode(u); err != nil {
			return err
		}
	}
	runtime.KeepAlive(w)
	return nil
}

func currentUsage() usage {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return usage{CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds(), Resident: statusBytes("VmRSS"),
		Peak: statusBytes("VmHWM")}
}

func heapInUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// statusBytes returns a figure of this process from Linux, 0 elsewhere.
func statusBytes(name string) float64 {
	content, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name+":" {
			kilobytes, _ := strconv.ParseFloat(fields[1], 64)
			return kilobytes * 1024
		}
	}
	return 0
}

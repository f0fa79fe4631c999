package nodeusage

import (
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkRound is what comes of each reading of 5,000 nodes: 10,000 forecasts, and a snapshot.
// bytes/node is what is kept of a node whose window is full, the snapshot included.
func BenchmarkRound(b *testing.B) {
	const nodes = 5000
	b.ReportAllocs()
	r := rand.New(rand.NewPCG(1, 1))
	before := heap()
	table, err := newTable(new(Options{}.withDefaults()), func(rejection) {})
	require.NoError(b, err)
	all := names(nodes)
	now := epoch
	read := func(n int) (out []Reading) {
		for _, name := range all {
			values := make([]float64, n)
			for i := range values {
				values[i] = 2 + r.Float64()
			}
			out = append(out, Reading{Node: name, Resource: CPU, Window: 15 * time.Second,
				Samples: every(now, values...)},
				Reading{Node: name, Resource: Memory, Samples: every(now, values...)})
		}
		return out
	}
	table.update(at(now), read(61), nil)
	loads := table.loads()
	require.Len(b, loads, nodes)
	kept := float64(heap()-before) / nodes
	var used time.Duration
	rounds := 0
	for b.Loop() {
		b.StopTimer()
		now += 15_000
		readings := read(1)
		b.StartTimer()
		began := cpuTime(b)
		table.update(at(now), readings, nil)
		loads = table.loads()
		used += cpuTime(b) - began
		rounds++
	}
	b.ReportMetric(float64(used.Microseconds())/1000/float64(rounds), "cpu-ms/round")
	b.ReportMetric(kept, "bytes/node")
	require.Len(b, loads, nodes)
	runtime.KeepAlive(table)
}

// cpuTime returns the CPU time that the process has had, which tells more than the clock where others use the machine.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap returns the bytes that are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

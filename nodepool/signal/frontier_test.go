package signal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/pipeline"
)

const (
	frontierNodes   = 40 // at the highest load
	frontierStartup = 2 * time.Minute
	frontierIdle    = 10 * time.Minute // after which idle nodes are removed
)

// BenchmarkFrontier plays recorded loads to a model of a pool, with learning and without, and reports the share of the
// time in which the load was above the threshold of the Ready nodes, and node-hours. The first eight days, or two
// thirds, do not count. It needs the folder of the traces:
//
//	FORESAIL_TRACES=DIR go test ./nodepool/signal -run - -bench Frontier -benchtime 1x
func BenchmarkFrontier(b *testing.B) {
	dir := os.Getenv("FORESAIL_TRACES")
	if dir == "" {
		b.Skip("FORESAIL_TRACES is not set")
	}
	for _, c := range []struct {
		name, file string
		requests   float64 // a second, for each of the trace, if these are counted
	}{
		{"NASA", "nasa_http_1min_199507.csv", 100},
		{"NAB", "nab_asg_cpu_5min.csv", 0},
		{"ServeGen", "servegen_llm_small_10min_14d.csv", 0},
		{"Twitter", "twitter_stream_1s_days2to8_202108.csv", 0},
	} {
		load := loadOf(b, filepath.Join(dir, c.file), c.requests)
		for _, threshold := range []float64{1, 0.85} {
			for _, learns := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/threshold=%v/learns=%t", c.name, threshold, learns), func(b *testing.B) {
					for b.Loop() {
						late, hours := playPool(b, load, threshold, learns)
						b.ReportMetric(100*late, "%late")
						b.ReportMetric(hours, "node-hours")
					}
				})
			}
		}
	}
}

// loadOf returns the load of a trace at each interval, in nodes. Counts have the noise of as many requests.
func loadOf(b *testing.B, file string, requests float64) []float64 {
	b.Helper()
	f, err := os.Open(file)
	require.NoError(b, err)
	defer f.Close()
	trace, err := workload.ReadTrace(file, f)
	require.NoError(b, err)
	random := rand.New(rand.NewPCG(1, 2))
	seconds := int64(interval / time.Second)
	load := make([]float64, trace.Length()/interval)
	for i := range load {
		for second := range seconds {
			load[i] += trace.Rate((int64(i)*seconds+second)*1000) / float64(seconds)
		}
		if counts := load[i] * requests * float64(seconds); counts > 0 {
			counts = max(0, math.Round(counts+math.Sqrt(counts)*random.NormFloat64()))
			load[i] = counts / requests / float64(seconds)
		}
		load[i] *= frontierNodes / trace.Largest()
	}
	return load
}

// playPool returns the share of late intervals, and the node-hours.
func playPool(b *testing.B, load []float64, threshold float64, learns bool) (late, hours float64) {
	b.Helper()
	forecast := defaults().Forecast
	forecast.StartupTime, forecast.ScaleDownMargin = frontierStartup, nil
	params := forecast.params(threshold)
	params.Whole = true
	p, err := pipeline.New(params)
	require.NoError(b, err)
	var (
		memory  pipeline.Memory
		past    *pipeline.Learned
		samples []pipeline.Sample
		counted int
	)
	if learns {
		past = pipeline.NewLearned(&params)
	}
	from := min(int(8*24*time.Hour/interval), len(load)*2/3)
	pool := modelPool{nodes: []int{1}}
	for i, v := range load {
		now := start.Add(time.Duration(i) * interval).UnixMilli()
		samples = append(samples, pipeline.Sample{T: now, V: v})
		if i >= from {
			counted++
			hours += float64(pool.last()) * interval.Hours()
			if v > float64(pool.ready()) {
				late++
			}
		}
		f, err := p.RunIn(&memory, pipeline.Input{
			Now: now, Total: samples[max(0, i-int(forecast.Window/interval)-1):], Target: pool.ready(),
			TargetRose: pipeline.Never, StartupTime: frontierStartup, Learned: past,
		})
		desired := pool.last()
		if err == nil {
			desired = f.Decision.Desired
			if learns {
				past.Learn(memory.Loads(), params.LearnOptions(), nil)
			}
		}
		pool.step(desired)
	}
	return late / float64(counted), hours
}

// modelPool launches nodes that are desired for measuredFor, and removes those that were not for frontierIdle.
type modelPool struct {
	nodes   []int // at each interval, those that start included
	desired []int
	rising  int // intervals for which more have been desired than there are
}

func (p *modelPool) last() int { return p.nodes[len(p.nodes)-1] }

// ready returns the nodes that have existed for the startup time.
func (p *modelPool) ready() int { return newest(p.nodes, frontierStartup, slices.Min[[]int]) }

func (p *modelPool) step(desired int) {
	p.desired = append(p.desired, desired)
	next := min(p.last(), newest(p.desired, frontierIdle, slices.Max[[]int]))
	p.rising++
	switch {
	case desired <= p.last():
		p.rising = 0
	case time.Duration(p.rising)*interval > measuredFor:
		next, p.rising = desired, 0
	}
	p.nodes = append(p.nodes, next)
}

// newest combines the newest values of a time.
func newest(of []int, span time.Duration, combine func([]int) int) int {
	of = of[max(0, len(of)-1-int(span/interval)):]
	return combine(of)
}

package pipeline_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

var update = flag.Bool("update", false, "rewrite testdata/holt.sha256")

const (
	holtRecord   = "testdata/holt.sha256"
	holtFleets   = 2000
	fleetsPerSum = 50
)

// TestHoltIsBitForBit compares every number of Holt's method over random parameters and inputs with those of commit
// a6f43b1, which the committed hashes were made from. The record changes only where fleets in random_test.go do.
func TestHoltIsBitForBit(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other architectures may fuse a multiplication and an addition, which rounds once and not twice")
	}
	var sums strings.Builder
	succeeded := 0
	for first := 0; first < holtFleets; first += fleetsPerSum {
		h := sha256.New()
		for seed := first; seed < first+fleetsPerSum; seed++ {
			if hashHolt(t, h, uint64(seed)) {
				succeeded++
			}
		}
		fmt.Fprintf(&sums, "%d %x\n", first, h.Sum(nil)[:12])
	}
	require.Greater(t, succeeded, holtFleets/2, "most fleets have a forecast")
	if *update {
		require.NoError(t, os.WriteFile(holtRecord, []byte(sums.String()), 0o644))
	}
	record, err := os.ReadFile(holtRecord)
	require.NoError(t, err)
	require.Equal(t, string(record), sums.String())
}

// hashHolt adds the whole result of a run to the hash. It reports whether there is a forecast.
func hashHolt(t *testing.T, h hash.Hash, seed uint64) bool {
	r := newFleets(seed)
	params := r.params()
	if seed%2 == 0 {
		params.Method = pipeline.Holt
	}
	in := r.input(params)
	p, err := pipeline.New(params)
	require.NoError(t, err, "seed %d", seed)
	f, err := p.Run(in)
	whole := func(values ...int64) {
		for _, v := range values {
			_ = binary.Write(h, binary.LittleEndian, v) // a hash accepts every write
		}
	}
	if err != nil {
		whole(int64(kindOf(err)))
		return false
	}
	for _, x := range []float64{f.Level, f.Error, f.Trend, f.Total, f.PlannedLoad, f.Weight, f.LoadNow,
		f.LoadPredicted, f.Required, f.ServedLoad} {
		whole(int64(math.Float64bits(x)))
	}
	whole(f.Now, f.Tick, int64(f.Horizon), int64(f.Active), int64(f.Target), int64(f.Dropped), int64(f.Decision.Desired))
	whole(direction(f.Decision.Direction), action(f.Decision.Action))
	h.Write([]byte(f.Decision.Reason))
	for _, x := range p.OneTickErrors() {
		whole(int64(math.Float64bits(x)))
	}
	history := pipeline.ScalingTimes{LastUp: in.TargetRose, LastDown: in.Now - r.Span(0, 120_000),
		NewestStart: in.Now - r.Span(0, 300_000)}
	cooled := params.Cooldown.Apply(f.Decision, f.Target, in.Now, history)
	whole(int64(cooled.Desired), action(cooled.Action))
	return true
}

func kindOf(err error) int {
	var stale *pipeline.StaleError
	switch {
	case errors.Is(err, pipeline.ErrNoData):
		return 1
	case errors.Is(err, pipeline.ErrOverflow):
		return 2
	case errors.As(err, &stale):
		return 3 + int(stale.Age/time.Millisecond)
	default:
		return 0
	}
}

func direction(d pipeline.Direction) int64 {
	switch d {
	case pipeline.Rising:
		return 1
	case pipeline.Falling:
		return -1
	default:
		return 0
	}
}

func action(a pipeline.Action) int64 {
	switch a {
	case pipeline.ScaleUp:
		return 1
	case pipeline.ScaleDown:
		return -1
	default:
		return 0
	}
}

package poolbench

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	long      = flag.Bool("long", false, "compare on all profiles")
	traceFile = flag.String("trace", "",
		"compare on this trace too: a header, then lines of Unix seconds and a value")
	traceFrom   = flag.Duration("trace-from", 0, "where in the trace to begin")
	traceLength = flag.Duration("trace-length", 24*time.Hour, "how much of it to play")
	tracePeak   = flag.Float64("trace-peak", 160, "pods at its highest minute")
)

const seed = 20260302

// compare plays a profile to each variant and prints what it came to.
func compare(t *testing.T, p profile, s settings) map[string]*outcome {
	t.Helper()
	var rows []named
	out := map[string]*outcome{}
	for _, v := range variants() {
		o := run(t, p, s, v, seed)
		rows = append(rows, named{v.name, o})
		out[v.name] = &o
	}
	var table strings.Builder
	printTable(&table, p.name+" ("+s.name+")", rows)
	t.Log("\n" + table.String())
	return out
}

func TestCompareRamp(t *testing.T) {
	out := compare(t, ramp(10*time.Minute), unhindered())
	assert.Less(t, out[forecasting].total(), out[presentLoad].total(),
		"nodes that are launched ahead are there when pods come")
	assert.Less(t, out[presentLoad].total(), out[pendingAlone].total())
}

// Prints what takes longer to play, or tells little of forecasts.
func TestCompareMore(t *testing.T) {
	if !*long {
		t.Skip("nothing is required of these: -long prints them")
	}
	cooling := unhindered()
	cooling.name, cooling.cooldownUp = "no limit of a batch, a cooldown of 5 min", 5*time.Minute
	compare(t, ramp(30*time.Minute), unhindered())
	compare(t, ramp(5*time.Minute), unhindered())
	compare(t, ramp(10*time.Minute), cooling)
	compare(t, ramp(10*time.Minute), defaults())
	compare(t, burst(seed), unhindered())
	compare(t, day(seed), unhindered())
	compare(t, day(seed), defaults())
}

func TestCompareTrace(t *testing.T) {
	if *traceFile == "" {
		t.Skip("-trace names none")
	}
	p, err := trace(*traceFile, *traceFrom, *traceLength, *tracePeak)
	require.NoError(t, err)
	compare(t, p, unhindered())
}

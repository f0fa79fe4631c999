package backtest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/simulator/scaler"
	"github.com/foresail/foresail/internal/simulator/workload"
	"github.com/foresail/foresail/pipeline"
)

// What is known before a section is the same in whatever order sections are played, also of a trace that lasts for weeks.
func TestPastsDoNotDependOnTheOrderOfSections(t *testing.T) {
	var trace strings.Builder
	trace.WriteString("unix_seconds,requests_per_second\n")
	for m := range 10 * 24 * 6 {
		fmt.Fprintf(&trace, "%d,%.2f\n", m*600, 50+30*math.Sin(float64(m)/10)+float64(m%7))
	}
	read, err := workload.ReadTrace("weeks", strings.NewReader(trace.String()))
	require.NoError(t, err)
	o := &Options{Trace: read, Capacity: 10, Threshold: 0.7, Params: scaler.RecommendedParams()}
	setting := o.setting("foresail-total")
	times := []int64{day, 2*day + 12345*second, 9 * day, 9*day + 3600*second}
	all := map[int64]*pipeline.Past{}
	forwards := newPlayer(o)
	for _, at := range times {
		all[at] = forwards.past(&setting, at)
	}
	backwards := newPlayer(o)
	for i := range times {
		at := times[len(times)-1-i]
		require.Equal(t, all[at], backwards.past(&setting, at), "at %d", at)
	}
	assert.Equal(t, int64(-second), all[day].Newest(), "as if it were 0")
	assert.Greater(t, all[9*day].Known(), 30*time.Hour)
	assert.Zero(t, forwards.past(&setting, -600*second).Known())
	setting.Params.Method = pipeline.Holt
	assert.Nil(t, forwards.past(&setting, day))
}

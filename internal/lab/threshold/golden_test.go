package threshold

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/golden"
)

// Each outcome of one load test.
func TestWhatIsWritten(t *testing.T) {
	var measurements []Measurement
	for i := range 120 {
		load := 0.2 + 0.75*float64(i*37%120)/120
		latency := 0.04 + 0.001*float64(i%5)
		if load > 0.72 && i%7 != 0 {
			latency += 0.5
		}
		measurements = append(measurements, Measurement{At: time.Unix(int64(60*i), 0), Load: load, Latency: latency})
	}
	all := map[string]string{}
	for limit, name := range map[float64]string{0.25: "found", 1: "never slow", 0.001: "always slow",
		0.0415: "unrelated"} {
		q := Question{Measurements: measurements, Limit: limit, Share: 0.05, Seed: 1}
		a, err := Find(q)
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, a.Report(&q).WriteText(&b))
		all[name] = b.String()
	}
	golden.EqualAll(t, "outcomes.txt", all)
}

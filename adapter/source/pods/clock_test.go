package pods

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
	"github.com/foresail/foresail/pipeline"
)

// A counter that is read each second has its rate, or none, also where the clock is set between two readings.
func TestRatesOfAClockThatIsSet(t *testing.T) {
	for _, by := range []time.Duration{2 * time.Hour, -2 * time.Hour, 30 * time.Second, -30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var c sourcetest.Clock
			sink := sourcetest.NewRecorder()
			r := &reader{endpoint: &endpoint{}, instance: "a", selection: &selection{as: source.Counter}, sink: sink}
			read := func(seconds int) {
				for range seconds {
					time.Sleep(time.Second) // virtual time
					r.deliver(pipeline.Sample{T: c.Now().UnixMilli(), V: 10 * float64(time.Now().Unix())}, c.Now(), 0)
				}
			}
			read(5)
			c.Set(by)
			read(5)
			values := sink.Values("a")
			assert.Len(t, values, 8, "by %s: all but the first of each clock", by)
			for _, v := range values {
				assert.InDelta(t, 10, v, 1e-9, "by %s", by)
			}
		})
	}
}

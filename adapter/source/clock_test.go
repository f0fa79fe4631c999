package source_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/sourcetest"
)

func TestClockStep(t *testing.T) {
	for _, by := range []time.Duration{0, 2 * time.Hour, -2 * time.Hour, time.Minute, -time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var c sourcetest.Clock
			before := c.Now()
			time.Sleep(3 * time.Second) // virtual time
			c.Set(by)
			after := c.Now()
			assert.Equal(t, by, source.ClockStep(before, after))
			assert.Equal(t, 3*time.Second, after.Sub(before), "the elapsed time stays")
			assert.Equal(t, by+3*time.Second, after.Round(0).Sub(before.Round(0)))
		})
	}
}

// A clock whose elapsed time was set as well, as of a machine that slept, shows that it was set back.
func TestClockStepOfAClockWithoutElapsedTime(t *testing.T) {
	now := time.Now()
	assert.Equal(t, -time.Hour, source.ClockStep(now, now.Add(-time.Hour)))
	assert.Zero(t, source.ClockStep(now, now.Add(time.Hour)))
}

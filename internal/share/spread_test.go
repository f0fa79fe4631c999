package share

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWorkIsSpreadOverMostOfItsPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		wait := Spread(ctx, 4*time.Second)
		assert.Zero(t, wait(0), "the first part waits for nothing")
		assert.Equal(t, 1500*time.Millisecond, wait(0.5))
		time.Sleep(1200 * time.Millisecond) // what the second part takes
		assert.Equal(t, 150*time.Millisecond, wait(0.95))
		assert.Zero(t, wait(0.9), "it is late")
		assert.Equal(t, 2850*time.Millisecond, time.Since(begun))
		cancel()
		assert.Zero(t, wait(1))
	})
}

package main

import (
	"errors"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMemoryLimitLeavesRoomForWhatGoDoesNotCount(t *testing.T) {
	limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	})
	for _, c := range []struct {
		environment map[string]string
		want        int64
		percent     int
	}{
		{map[string]string{}, limit, gcPercent},
		{map[string]string{"FORESAIL_MEMORY_LIMIT": "1000000000"}, 900_000_000, gcPercent},
		{map[string]string{"FORESAIL_MEMORY_LIMIT": "1000000000", "GOMEMLIMIT": "5GiB", "GOGC": "80"}, limit, 100},
	} {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(100)
		assert.NoError(t, limitMemory(func(name string) string { return c.environment[name] }))
		assert.Equal(t, c.want, debug.SetMemoryLimit(-1), "%v", c.environment)
		assert.Equal(t, c.percent, debug.SetGCPercent(100), "%v", c.environment)
	}
	for _, bad := range []string{"1Gi", "0", "-5"} {
		err := limitMemory(func(name string) string { return map[string]string{"FORESAIL_MEMORY_LIMIT": bad}[name] })
		assert.EqualError(t, err, `FORESAIL_MEMORY_LIMIT: "`+bad+`": must be a number of bytes, such as 1073741824`)
		assert.True(t, errors.As(err, new(usageError)))
	}
}

package hourly

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestEachFailureIsLoggedOnceAnHour(t *testing.T) {
	var l Log
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	assert.True(t, l.Due("read", now))
	assert.False(t, l.Due("read", now.Add(time.Hour-1)))
	assert.True(t, l.Due("write", now.Add(time.Minute)), "it is another one")
	assert.True(t, l.Due("read", now.Add(time.Hour)))
	assert.False(t, l.Due("read", now.Add(time.Hour+time.Minute)))
	assert.True(t, l.Due("another", now.Add(24*time.Hour)))
	assert.Len(t, l.at, 1, "what failed long ago is forgotten")
}

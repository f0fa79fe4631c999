package keep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRetriesWaitForTimeOrAnotherSpec(t *testing.T) {
	now, pm, r := time.Now(), metric("a", "checkout", "1", 0), retries{}
	assert.False(t, r.waiting(pm, now))
	r.hold(pm, now)
	assert.True(t, r.waiting(pm, now.Add(RetryPeriod-1)))
	assert.False(t, r.waiting(pm, now.Add(RetryPeriod)))
	pm.Generation++
	assert.False(t, r.waiting(pm, now))
}

func TestTurnsOfANamespace(t *testing.T) {
	writeBudget := WriteBudget{}
	for range TurnsPerCheck {
		assert.True(t, writeBudget.Take("shop"))
	}
	assert.False(t, writeBudget.Take("shop"))
	assert.True(t, writeBudget.Take("bank"))
}

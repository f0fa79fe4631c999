package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValuesThatOnlyTestsChange(t *testing.T) {
	o := parsedRun(t)
	require.NoError(t, o.readTestOptions(func(string) string { return "" }))
	assert.Equal(t, 15*time.Second, o.extender.interval)
	assert.Equal(t, 365*24*time.Hour, o.adapter.api.apiService.validity)

	require.NoError(t, o.readTestOptions(func(name string) string {
		assert.Equal(t, "FORESAIL_TEST_OPTIONS", name)
		return "extender-metrics-interval=1s extender-warm-up=0s scrape-allow-loopback=true apiservice-ca-validity=1m"
	}))
	assert.Equal(t, time.Second, o.extender.interval)
	assert.Zero(t, o.extender.rules.WarmUp)
	assert.Equal(t, time.Minute, o.adapter.api.apiService.validity)

	err := o.readTestOptions(func(string) string { return "scrape-allow=true" })
	assert.ErrorContains(t, err, `FORESAIL_TEST_OPTIONS: "scrape-allow=true": no such flag`)
}

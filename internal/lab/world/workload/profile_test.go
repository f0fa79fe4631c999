package workload_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/world/workload"
)

func TestProfilesFollowTheirShapes(t *testing.T) {
	for _, c := range []struct {
		profile string
		second  float64 // from the start of what counts
		want    float64
	}{
		{"ramp", -60, 100}, {"ramp", 0, 100}, {"ramp", 15, 55}, {"ramp", 30, 10}, {"ramp", 105, 405},
		{"ramp", 180, 800}, {"ramp", 400, 800},
		{"spike", -60, 0}, {"spike", 0, 0}, {"spike", 5, 400}, {"spike", 10, 800}, {"spike", 130, 800},
		{"sine", 0, 100}, {"sine", 75, 400}, {"sine", 150, 700}, {"sine", 300, 100},
		{"sawtooth", 0, 100}, {"sawtooth", 175, 700}, {"sawtooth", 180, 100}, {"sawtooth", 900, 100},
		{"falling", -240, 100}, {"falling", 0, 700}, {"falling", 60, 700}, {"falling", 120, 400}, {"falling", 500, 100},
	} {
		p, err := workload.New(c.profile, 1)
		require.NoError(t, err)
		at := p.Span.Lead.Milliseconds() + int64(c.second*1000)
		assert.InDelta(t, c.want, p.Load.Rate(at), 1e-6, "%s at %v s", c.profile, c.second)
	}
}

func TestProfilesAreAFunctionOfTheSeed(t *testing.T) {
	for _, name := range workload.Names() {
		a, err := workload.New(name, 1)
		require.NoError(t, err)
		again, err := workload.New(name, 1)
		require.NoError(t, err)
		assert.Equal(t, name, a.Name)
		assert.Equal(t, a, again)
		for at := int64(0); at < (a.Span.Lead + a.Span.Length).Milliseconds(); at += 500 {
			require.GreaterOrEqual(t, a.Load.Rate(at), 0.0)
		}
	}
	for _, name := range []string{"noise", "bursts", "drift"} {
		a, err := workload.New(name, 1)
		require.NoError(t, err)
		b, err := workload.New(name, 2)
		require.NoError(t, err)
		assert.NotEqual(t, a.Load, b.Load, name)
	}
}

func TestRejectsUnknownProfiles(t *testing.T) {
	_, err := workload.New("rampp", 1)
	assert.ErrorContains(t, err, `profile: "rampp": must be one of ramp, spike,`)
}

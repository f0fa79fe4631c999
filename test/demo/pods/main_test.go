package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/stack"
)

// configOf returns what the command makes of arguments.
func configOf(t *testing.T, args ...string) (config, error) {
	t.Helper()
	var got config
	command := newCommand(func(_ context.Context, c config) error { got = c; return nil })
	command.SetArgs(append([]string{}, args...)) // of nil it would make the arguments of the test
	command.SetErr(io.Discard)
	command.SetOut(io.Discard)
	err := command.ExecuteContext(t.Context())
	return got, err
}

func TestFlags(t *testing.T) {
	c, err := configOf(t)
	require.NoError(t, err)
	assert.Equal(t, 170*time.Second, c.profile.Duration())
	assert.Equal(t, "out/demo.svg", c.chart)

	c, err = configOf(t, "--down", "--profile", "0s:10,60s:100")
	require.NoError(t, err)
	assert.Equal(t, 4*time.Minute, c.profile.Duration())
	assert.InDelta(t, 10, c.profile.Rate(2*time.Minute), 0)

	for _, args := range [][]string{{"--profile", "10"}, {"--profile", "0s:1,59m:1", "--down"}, {"--seed", "-1"},
		{"more"}} {
		_, err := configOf(t, args...)
		assert.Error(t, err, "%q", args)
	}
}

func TestRampFitsTheApplications(t *testing.T) {
	p := profileOfDefault(t)
	for _, a := range applications() {
		assert.Equal(t, a.Min, needed(a, p[0].RPS), "the ramp begins within what the first pods carry")
		assert.Less(t, needed(a, most(p)), a.Max, "and ends within what the most can")
	}
}

func TestApplicationsDifferInTheForecastAlone(t *testing.T) {
	apps := applications()
	assert.False(t, apps[0].Reactive)
	assert.True(t, apps[1].Reactive)
	apps[1].Name, apps[1].Reactive = apps[0].Name, false
	assert.Equal(t, apps[0], apps[1])
}

func TestForecastIsReadFromTheAdaptersMetrics(t *testing.T) {
	const body = `# TYPE foresail_predicted_load_per_instance gauge
foresail_predicted_load_per_instance{namespace="demo",predictedmetric="predicted"} 0.81
foresail_predicted_load_per_instance{namespace="other",predictedmetric="reactive"} 0.5
# TYPE foresail_horizon_seconds gauge
foresail_horizon_seconds{namespace="demo",predictedmetric="predicted"} 38.5
foresail_horizon_seconds{namespace="demo",predictedmetric="reactive"} 0
`
	families, err := foresail.ParseMetrics(strings.NewReader(body))
	require.NoError(t, err)
	apps := applications()
	assert.Equal(t, forecast{known: true, load: 0.81, horizon: 38500 * time.Millisecond}, forecastOf(apps[0], families))
	assert.False(t, forecastOf(apps[1], families).known, "a forecast that is not there is unknown, not zero")
	assert.False(t, forecastOf(apps[0], nil).known)
}

func TestBoardHandsOutWhatWasThere(t *testing.T) {
	b := newBoard("/tmp/kubeconfig", profileOfDefault(t), applications())
	b.note(0, stack.Moment{At: time.Second})
	before := b.look()
	b.note(0, stack.Moment{At: 2 * time.Second})
	b.foresee(1, forecast{known: true})
	assert.Len(t, before.panels[0].moments, 1)
	assert.False(t, before.panels[1].forecast.known)
	assert.Equal(t, 2*time.Second, b.look().at)
}

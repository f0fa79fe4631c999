package params

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
)

func calendar(t *testing.T, file string) *schedule.Calendar {
	t.Helper()
	spec := readSpec(t, filepath.Join(testdata, file))
	p, err := FromSpec(spec)
	require.NoError(t, err)
	c, err := Schedules(spec, &p)
	require.NoError(t, err)
	return c
}

func TestSchedulesArriveWhereTheyBelong(t *testing.T) {
	c := calendar(t, "valid/schedules.yaml")
	for _, x := range []struct {
		at        string
		want      pipeline.Bounds
		names     string
		unlearned bool
	}{
		{"2026-11-27T05:59:00Z", pipeline.Bounds{Min: 4, Max: 20, Lateness: 0.01}, "", false},
		{"2026-11-27T06:10:00Z", pipeline.Bounds{Min: 30, Max: 100, Lateness: 0.001}, "black-friday", false},
		{"2026-11-27T07:00:00Z", pipeline.Bounds{Min: 30, Max: 100, Lateness: 0.001}, "black-friday office-hours",
			false},
		{"2026-12-02T07:00:00Z", pipeline.Bounds{Min: 8, Max: 20, Lateness: 0.01}, "office-hours", false},
		{"2026-12-24T04:00:00Z", pipeline.Bounds{Min: 2, Max: 4, Lateness: 0.01}, "holidays night", true},
		{"2026-12-24T15:00:00Z", pipeline.Bounds{Min: 8, Max: 10, Lateness: 0.01}, "office-hours holidays", true},
		{"2026-01-01T15:00:00Z", pipeline.Bounds{Min: 8, Max: 20, Lateness: 0.5}, "office-hours longest", false},
	} {
		now, err := time.Parse(time.RFC3339, x.at)
		require.NoError(t, err)
		bounds, names := c.At(now, 0, 0)
		x.want.NodeMin, x.want.NodeMax = x.want.Min, x.want.Max
		assert.Equal(t, &x.want, bounds, x.at)
		assert.Equal(t, x.names, strings.Join(names, " "), x.at)
		assert.Equal(t, x.unlearned, c.Unlearned(now.UnixMilli()), x.at)
	}
	bounds, _ := calendar(t, "valid/schedules-zero.yaml").At(time.Date(2026, 1, 1, 23, 0, 0, 0, time.UTC), 0, 0)
	assert.Equal(t, []int{0, math.MaxInt32}, []int{bounds.Min, bounds.Max})
	assert.Nil(t, calendar(t, "valid/minimal.yaml"))
}

// No rule of the API knows time zones, and which cron schedules have times.
func TestSchedulesThatNoRuleCanReject(t *testing.T) {
	for text, want := range map[string]string{
		"schedule: 0 0 31 2 *": `schedule: "0 0 31 2 *": must be a cron schedule with times that come, unlike 31 February`,
		"schedule: 0 9-8 * * *": `schedule: "0 9-8 * * *": must be a cron schedule: ` +
			"beginning of range (9) beyond end of range (8): 9-8",
		"schedule: '@daily', timeZone: Europe/Atlantis": `timeZone: "Europe/Atlantis": must be a name of the IANA time zone ` +
			"database, such as Europe/Berlin or UTC",
	} {
		spec, err := ParseSpec([]byte(`{threshold: 1, schedules: [{name: a, duration: 1h, minReplicas: 8, ` + text + "}]}"))
		require.NoError(t, err, text)
		_, err = FromSpec(spec)
		assert.EqualError(t, err, "spec.schedules[0]."+want, text)
	}
}

// A schedule that no API server has validated has an error, whatever it lacks.
func TestSchedulesWithoutAWindowAreErrors(t *testing.T) {
	for _, s := range []v1alpha1.Schedule{{Name: "a"}, {Start: &metav1.Time{}},
		{End: &metav1.Time{}}, {Schedule: "@daily"}} {
		spec := minimal()
		spec.Schedules = []v1alpha1.Schedule{s}
		_, err := FromSpec(spec)
		assert.ErrorContains(t, err, "spec.schedules[0].", s)
	}
}

func TestErrorsOfSchedulesNameTheirPlace(t *testing.T) {
	const window = "name: a, minReplicas: 8, schedule: '@daily'"
	for text, want := range map[string]string{
		"[{" + window + ", duration: 1h, starts: now}]": "spec.schedules[0].starts: no such field: must be one of duration, " +
			"end, lateness, learning, maxReplicas, minReplicas, name, schedule, start, timeZone",
		"[{name: a}, {name: b, start: 27 November}]": "spec.schedules[1].start: 27 November: " +
			"must be a time with its offset from UTC, such as 2026-11-27T08:00:00+01:00",
		"[{" + window + ", duration: a day}]": "spec.schedules[0].duration: a day: " +
			"must be hours and minutes, from 1m to 744h, such as 10h",
		"[{" + window + ", duration: 1h}, {" + window +
			", duration: 2h}]": "spec.schedules[1]: must be the only one with name a",
		"{name: a}":                   "spec.schedules: must be a list",
		"[holidays]":                  "spec.schedules[0]: holidays: must be an object",
		"[{name: a, minReplicas: 8}]": "spec.schedules[0]: must have either schedule and duration, or start and end",
	} {
		_, err := ParseSpec([]byte("{threshold: 1, schedules: " + text + "}"))
		require.Error(t, err, text)
		first, _, _ := strings.Cut(err.Error(), "\n")
		assert.Equal(t, want, first, text)
	}
}

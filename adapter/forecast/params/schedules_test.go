package params

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		{"2026-11-27T07:00:00Z", pipeline.Bounds{Min: 30, Max: 100, Lateness: 0.001}, "black-friday office-hours", false},
		{"2026-12-02T07:00:00Z", pipeline.Bounds{Min: 8, Max: 20, Lateness: 0.01}, "office-hours", false},
		{"2026-12-24T04:00:00Z", pipeline.Bounds{Min: 2, Max: 4, Lateness: 0.01}, "holidays night", true},
		{"2026-12-24T15:00:00Z", pipeline.Bounds{Min: 8, Max: 10, Lateness: 0.01}, "office-hours holidays", true},
		{"2026-01-01T15:00:00Z", pipeline.Bounds{Min: 8, Max: 20, Lateness: 0.5}, "office-hours longest", false},
	} {
		now, err := time.Parse(time.RFC3339, x.at)
		require.NoError(t, err)
		bounds, names := c.At(now, 0, 0)
		x.want.FartherMin, x.want.FartherMax = x.want.Min, x.want.Max
		assert.Equal(t, &x.want, bounds, x.at)
		assert.Equal(t, x.names, strings.Join(names, " "), x.at)
		assert.Equal(t, x.unlearned, c.Unlearned(now.UnixMilli()), x.at)
	}
	bounds, _ := calendar(t, "valid/schedules-zero.yaml").At(time.Date(2026, 1, 1, 23, 0, 0, 0, time.UTC), 0, 0)
	assert.Equal(t, []int{0, math.MaxInt32}, []int{bounds.Min, bounds.Max})
	assert.Nil(t, calendar(t, "valid/minimal.yaml"))
}

// What no schema can tell, and what specs in files may have as well, which no API server has seen.
func TestProblemsOfSchedulesNameFieldValueAndWhatIsAccepted(t *testing.T) {
	const window = "name: a, schedule: '@daily', duration: 1h"
	for text, want := range map[string]string{
		"{name: a, schedule: 0 0 31 2 *, duration: 1h, minReplicas: 8}":                          `spec.schedules[0].schedule: "0 0 31 2 *": must be a cron schedule with times that come, unlike 31 February`,
		"{name: a, schedule: 0 9-8 * * *, duration: 1h, minReplicas: 8}":                         `spec.schedules[0].schedule: "0 9-8 * * *": must be a cron schedule: beginning of range (9) beyond end of range (8): 9-8`,
		"{" + window + ", timeZone: Europe/Atlantis, minReplicas: 8}":                            `spec.schedules[0].timeZone: "Europe/Atlantis": must be a name of the IANA time zone database, such as Europe/Berlin or UTC`,
		"{" + window + ", minReplicas: 21}":                                                      "spec.schedules[0].minReplicas: 21: must be at most maxReplicas of the spec (20), unless maxReplicas is given here too",
		"{" + window + ", maxReplicas: 3}":                                                       "spec.schedules[0].maxReplicas: 3: must be at least minReplicas, here or in the spec (4)",
		"{" + window + ", minReplicas: 0}":                                                       "spec.schedules[0].minReplicas: 0: must be at least 1, or 0 if the source measures the whole target",
		"{" + window + ", lateness: 0%}":                                                         "spec.schedules[0].lateness: 0%: must be a percentage above 0% and up to 50%, such as 0.1%",
		"{" + window + ", learning: Never}":                                                      "spec.schedules[0].learning: Never: must be Disabled, or absent",
		"{" + window + "}":                                                                       "spec.schedules[0]: without effect: must be given at least one of minReplicas, maxReplicas, lateness and learning",
		"{name: a, minReplicas: 8}":                                                              "spec.schedules[0]: no window: must be given either schedule and duration, or start and end",
		"{name: a, schedule: '@daily', minReplicas: 8}":                                          "spec.schedules[0].duration: absent: must be given with schedule",
		"{name: a, schedule: '@daily', duration: 800h, minReplicas: 8}":                          "spec.schedules[0].duration: 800h0m0s: must be hours and minutes, from 1m to 744h, such as 10h",
		"{name: a, start: 2026-11-27T07:00:00Z, minReplicas: 8}":                                 "spec.schedules[0].end: absent: must be given with start",
		"{name: a, end: 2026-11-27T07:00:00Z, minReplicas: 8}":                                   "spec.schedules[0].start: absent: must be given with end",
		"{name: a, start: 2026-11-27T07:00:00Z, end: 2026-11-27T08:00:00+01:00, minReplicas: 8}": "spec.schedules[0].end: 2026-11-27T07:00:00Z: must be after start (2026-11-27T07:00:00Z)",
		"{" + window + ", start: 2026-11-27T07:00:00Z, minReplicas: 8}":                          "spec.schedules[0]: both kinds of window: must be given either schedule and duration, or start and end",
		"{" + window + ", minReplicas: 8}, {" + window + ", minReplicas: 9}":                     "spec.schedules[1].name: a: must be unlike those of the other schedules",
	} {
		spec, err := ParseSpec([]byte("{threshold: 1, minReplicas: 4, maxReplicas: 20, schedules: [" + text + "]}"))
		require.NoError(t, err, text)
		for i := range spec.Schedules { // YAML reads some times in another zone
			if end := spec.Schedules[i].End; end != nil {
				end.Time = end.UTC()
			}
			if start := spec.Schedules[i].Start; start != nil {
				start.Time = start.UTC()
			}
		}
		_, err = FromSpec(spec)
		assert.EqualError(t, err, want, text)
	}
}

func TestMisfitsInSchedulesNameTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"[{name: a, starts: now}]":                     "spec.schedules[0].starts: no such field: must be one of name, schedule, duration, timeZone, start, end, minReplicas, maxReplicas, lateness, learning",
		"[{name: a}, {name: b, start: 27 November}]":   "spec.schedules[1].start: 27 November: must be a time with its offset from UTC, such as 2026-11-27T08:00:00+01:00",
		"[{name: a, duration: a day, minReplicas: 1}]": "spec.schedules[0].duration: a day: must be a duration, such as 90s",
		"{name: a}":  "spec.schedules: map[name:a]: must be a list",
		"[holidays]": "spec.schedules[0]: holidays: must be an object",
	} {
		_, err := ParseSpec([]byte("{threshold: 1, schedules: " + text + "}"))
		assert.EqualError(t, err, want, text)
	}
}

//go:build long

package pipeline_test

import (
	"maps"
	"slices"
	"testing"
)

func TestJumpsOfSomeHoursKeepMoreLateness(t *testing.T) { testJumpsOfSomeHours(t, 0.02) }

func TestSteepRisesKeepLatenessForLonger(t *testing.T) { testSteepRises(t, 6) }

func TestMoreIncidentsTeachNothing(t *testing.T) {
	testIncidents(t, slices.Sorted(maps.Keys(incidents))...)
}

func TestMoreNightsThatRecurAreLearned(t *testing.T) {
	testNights(t, slices.Sorted(maps.Keys(nights))...)
}

//go:build long

package pipeline_test

import "testing"

func TestJumpsOfSomeHoursKeepMoreLateness(t *testing.T) { testJumpsOfSomeHours(t, 0.02) }

func TestSteepRisesKeepLatenessForLonger(t *testing.T) { testSteepRises(t, 6) }

func TestCheckpointRefusesEachByte(t *testing.T) { testCheckpointRefuses(t, 1) }

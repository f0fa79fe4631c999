//go:build long

package forecaster

import "testing"

// TestHostileReadingsOfAMillionSteps has the worlds that the unit tests leave out.
func TestHostileReadingsOfAMillionSteps(t *testing.T) { testHostileReadings(t, 25, 1325) }

func TestMoreUnluckyOrdersOfEvents(t *testing.T) { testUnlucky(t, 5, 400) }

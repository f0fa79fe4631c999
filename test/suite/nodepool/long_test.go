//go:build long

package nodepool

import "testing"

// TestEveryCrash takes every crash point.
func TestEveryCrash(t *testing.T) { testCrash(t, 1) }

func TestFurtherRivals(t *testing.T) { testRivals(t, 1, 3) }

func TestRivalsWithTheOtherClock(t *testing.T) { testWrongClock(t, 1) }

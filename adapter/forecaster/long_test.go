//go:build long

package forecaster

import "testing"

func TestMoreUnluckyOrdersOfEvents(t *testing.T) { testUnlucky(t, 5, 400) }

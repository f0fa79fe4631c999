//go:build long

package prometheus

import "testing"

func TestSumsOfMoreUnluckyGateways(t *testing.T) { testUnluckyGateways(t, 150, 4000) }

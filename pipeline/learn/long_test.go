//go:build long

package learn

import "testing"

func TestCheckpointRefusesEachByte(t *testing.T) { testCheckpointRefuses(t, 1) }

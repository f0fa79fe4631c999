//go:build long

package nodepool

import "testing"

func TestManyMoreProcesses(t *testing.T) { testManyProcesses(t, 3, 30) }

func TestManyMoreQuietWorlds(t *testing.T) { testQuietWorlds(t, 200) }

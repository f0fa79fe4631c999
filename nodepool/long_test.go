//go:build long

package nodepool

import (
	"math/rand/v2"
	"testing"
)

func TestManyMoreProcesses(t *testing.T) { testManyProcesses(t, 3, 30) }

func TestManyMoreQuietWorlds(t *testing.T) {
	seeds := make([]uint64, 200)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	testQuietWorlds(t, seeds...)
}

//go:build long

package extender

import "testing"

// crowd is how many pods come at once where tests are about many.
const crowd = 1000

func TestBurstOfAThousandDoesNotHerd(t *testing.T) { testBurst(t) }

func TestSchedulingOfAThousandGoesOn(t *testing.T) { testTroubles(t) }

func TestRemovedNodesReceiveNoneOfAThousandPods(t *testing.T) { testRemoval(t) }

package loadgen

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func picks(t *testing.T, b *Balancer, now time.Duration, count int, addresses ...string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for range count {
		address, err := b.Pick(now, addresses)
		require.NoError(t, err)
		counts[address]++
	}
	return counts
}

const (
	a = "127.0.0.1:80"
	b = "127.0.0.2:80"
	c = "127.0.0.3:80"
)

func TestBalancerIsRoundRobin(t *testing.T) {
	var balancer Balancer
	for range 10 {
		assert.Equal(t, map[string]int{a: 1, b: 1, c: 1}, picks(t, &balancer, 0, 3, a, b, c))
	}
	assert.Equal(t, map[string]int{a: 50, c: 50}, picks(t, &balancer, 0, 100, a, c), "one has gone")
	assert.Equal(t, map[string]int{c: 5}, picks(t, &balancer, 0, 5, c))
}

func TestBalancerSlowStart(t *testing.T) {
	balancer := Balancer{slowStart: 30 * time.Second}
	assert.Equal(t, map[string]int{a: 50, b: 50}, picks(t, &balancer, 0, 100, a, b), "all new: equal shares")
	now := time.Minute
	picks(t, &balancer, now, 1, a, b, c)
	for age, want := range map[time.Duration]float64{0: 0.1, time.Second: 0.1, 15 * time.Second: 0.5,
		30 * time.Second: 1, time.Hour: 1} {
		got := picks(t, &balancer, now+age, 2100, a, b, c)
		assert.InDelta(t, want/(2+want)*2100, got[c], 2, "age %v", age)
		assert.InDelta(t, got[a], got[b], 2)
	}
}

func TestBalancerForgetsWhoLeft(t *testing.T) {
	balancer := Balancer{slowStart: 10 * time.Second}
	picks(t, &balancer, 0, 1, a, b)
	picks(t, &balancer, time.Minute, 1, a)
	got := picks(t, &balancer, time.Minute, 1100, a, b)
	assert.InDelta(t, 100, got[b], 2, "one that comes back starts slowly again")
}

func TestBalancerRefusesOtherMachines(t *testing.T) {
	for _, address := range []string{"192.0.2.1:80", "localhost:80", "example.com:80", "127.0.0.1", "[2001:db8::1]:80",
		"0.0.0.0:80", ""} {
		var balancer Balancer
		_, err := balancer.Pick(0, []string{a, address})
		require.ErrorContains(t, err, "endpoint", address)
	}
	var balancer Balancer
	_, err := balancer.Pick(0, []string{"[::1]:80"})
	require.NoError(t, err)
}

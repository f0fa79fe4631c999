package source

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPhaseIsStableAndSpread(t *testing.T) {
	const interval, parts, n = time.Second, 10, 10_000
	var perPart [parts]int
	for i := range n {
		url := fmt.Sprintf("http://10.0.%d.%d:9090/metrics", i/250, i%250)
		phase := Phase(interval, "shop", url)
		assert.Equal(t, phase, Phase(interval, "shop", url))
		perPart[phase*parts/interval]++
	}
	for _, count := range perPart {
		assert.InDelta(t, n/parts, count, 150, "five standard deviations")
	}
	assert.NotEqual(t, Phase(interval, "ab", "c"), Phase(interval, "a", "bc"))
}

func TestUntilNext(t *testing.T) {
	for _, test := range []struct{ now, phase, want time.Duration }{
		{0, 300, 300}, {299, 300, 1}, {300, 300, 1000}, {301, 300, 999}, {5000, 0, 1000}, {5999, 999, 1000},
		{0, 0, 1000},
		{-1, 0, 1}, {-1000, 300, 300},
	} {
		assert.Equal(t, test.want, UntilNext(test.now, test.phase, 1000), "%v", test)
	}
}

func TestBackoff(t *testing.T) {
	for _, test := range []struct {
		n                  int
		first, limit, want time.Duration
	}{
		{1, 1, 30, 1}, {2, 1, 30, 2}, {3, 1, 30, 4}, {5, 1, 30, 16}, {6, 1, 30, 30}, {1_000_000, 1, 30, 30},
		{1, 60, 30, 60}, {9, 60, 30, 60},
	} {
		assert.Equal(t, test.want, Backoff(test.n, test.first, test.limit), "%v", test)
	}
}

package whatif

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkPlay plays an hour of a few pods, and of as many as there may be.
func BenchmarkPlay(b *testing.B) {
	for _, pods := range []float64{10, 50} {
		b.Run(fmt.Sprintf("%.0f pods", pods*9), func(b *testing.B) {
			p := recommended(0.7 / pods)
			p.Max, p.Saturation.Enabled = maxPlayed, false
			for b.Loop() {
				_, err := Play(b.Context(), p, hour(0.7))
				require.NoError(b, err)
			}
		})
	}
}

package forecast

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/state"
)

// TestAttemptsAreBounded: the journal has at most its limit of them, preferring failed ones.
func TestAttemptsAreBounded(t *testing.T) {
	var list []state.Attempt
	for i := range 2 * state.MaxAttempts {
		list = append(list, state.Attempt{Kind: fmt.Sprint(i), Began: time.Unix(int64(i), 0), Failed: i % 4 / 3})
	}
	out := boundedAttempts(list)
	require.Len(t, out, state.MaxAttempts)
	failed := 0
	for _, one := range out {
		failed += one.Failed
	}
	require.Equal(t, state.MaxAttempts/2, failed)
}

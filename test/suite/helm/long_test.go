//go:build long

package helm_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/suite/helm"
)

// TestPreviousHelm does with the Helm before what the other tests do with the present one.
func TestPreviousHelm(t *testing.T) {
	previous, err := helm.Previous.Build(t.Context(), os.Stderr)
	require.NoError(t, err)
	t.Run("renderings", func(t *testing.T) { chartEqualsKustomizations(t, previous) })
	t.Run("life", func(t *testing.T) { releaseThroughItsLife(t, start(t, previous)) })
}

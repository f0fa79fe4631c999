package controlplane

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSweepRemovesOnlyWhatNobodyHolds(t *testing.T) {
	parent := t.TempDir()
	held, lock, err := newClusterDir(parent, false)
	require.NoError(t, err)
	defer lock.Close()
	abandoned, abandonedLock, err := newClusterDir(parent, false)
	require.NoError(t, err)
	kept, keptLock, err := newClusterDir(parent, true)
	require.NoError(t, err)
	require.Nil(t, keptLock)
	foreign := filepath.Join(parent, "something-else")
	require.NoError(t, os.Mkdir(foreign, 0o755))

	// As when the process is killed.
	require.NoError(t, abandonedLock.Close())
	sweep(parent)
	require.NoDirExists(t, abandoned)
	for _, dir := range []string{held, kept, foreign} {
		require.DirExists(t, dir)
	}
}

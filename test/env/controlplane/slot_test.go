package controlplane

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlotsAreExclusive(t *testing.T) {
	first, err := takeSlot()
	require.NoError(t, err)
	defer first.release()

	require.Error(t, (&slot{number: first.number}).take(), "a slot that is held")

	second, err := takeSlot()
	require.NoError(t, err)
	require.NotEqual(t, first.number, second.number)
	require.False(t, first.podCIDR().Overlaps(second.podCIDR()))
	second.release()

	again := &slot{number: second.number}
	require.NoError(t, again.take(), "a slot that was given back")
	again.release()
}

func TestSlotWithAnOccupiedPortIsNotTaken(t *testing.T) {
	s, err := takeSlot()
	require.NoError(t, err)
	occupant, err := net.Listen("tcp", s.address(kwokPort))
	require.NoError(t, err)
	defer occupant.Close()
	s.release()

	s = &slot{number: s.number}
	require.Error(t, s.take())
	holder, err := net.Listen("tcp", s.address(0))
	require.NoError(t, err, "what a failed attempt took is given back")
	require.NoError(t, holder.Close())
}

func TestSlotsKeepClearOfEphemeralPorts(t *testing.T) {
	last := &slot{number: lastSlot}
	require.Less(t, last.port(usedPorts-1), 32768)
	require.LessOrEqual(t, usedPorts, portsPerSlot)
}

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

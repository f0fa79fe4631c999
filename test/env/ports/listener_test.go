package ports

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTakeLeavesOutPortsOfAllAddresses(t *testing.T) {
	port, err := Take()
	require.NoError(t, err)
	require.True(t, free(port))
	for _, all := range []string{"0.0.0.0", "::"} {
		listener, err := net.Listen("tcp", net.JoinHostPort(all, strconv.Itoa(port)))
		require.NoError(t, err)
		assert.False(t, free(port), "a program listens on %s", all)
		require.NoError(t, listener.Close())
	}
}

func TestExplainNamesTheProgram(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the program is found in /proc")
	}
	for _, at := range []string{"0.0.0.0:0", "[::]:0", "127.0.0.1:0"} {
		held, err := net.Listen("tcp", at)
		require.NoError(t, err)
		address := Loopback(held.Addr().(*net.TCPAddr).Port)
		_, err = net.Listen("tcp", address)
		require.Error(t, err)

		explained := Explain(err, address)
		require.ErrorIs(t, explained, err)
		assert.ErrorContains(t, explained, fmt.Sprintf("(pid %d) listens on %s; stop that program", os.Getpid(),
			held.Addr()))
		require.NoError(t, held.Close())
		assert.Empty(t, listener(address), "it has ended")
	}
}

func TestExplainLeavesOtherErrors(t *testing.T) {
	err := errors.New("no network")
	assert.Equal(t, err, Explain(err, "127.0.0.1:8080"))
}

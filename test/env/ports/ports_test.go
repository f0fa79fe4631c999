package ports

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// many is enough for two callers that each took a random port to have taken the same one almost surely.
const many = 300

// inAnotherProcess has the test binary take ports, print them and wait until its input ends.
const inAnotherProcess = "FORESAIL_TEST_TAKES_PORTS"

func TestMain(m *testing.M) {
	if os.Getenv(inAnotherProcess) == "" {
		os.Exit(m.Run())
	}
	for range many {
		port, err := Take()
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString(strconv.Itoa(port) + "\n")
	}
	_ = os.Stdout.Close()
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestNobodyElseGetsAPort(t *testing.T) {
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), inAnotherProcess+"=1")
	input, err := other.StdinPipe()
	require.NoError(t, err)
	output, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())

	var mu sync.Mutex
	taken := map[int]int{}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range many / 4 {
				port, err := Take()
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				taken[port]++
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	printed, err := io.ReadAll(output)
	require.NoError(t, err)
	for port := range strings.FieldsSeq(string(printed)) {
		number, err := strconv.Atoi(port)
		require.NoError(t, err)
		taken[number]++
	}
	require.NoError(t, input.Close())
	require.NoError(t, other.Wait())

	assert.Equal(t, 2*many, len(taken), "ports that as many calls got")
	for port := range taken {
		assert.True(t, firstPort <= port && port <= lastPort, "port %d", port)
	}
}

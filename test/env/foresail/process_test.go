package foresail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script returns options of a program in the place of foresail.
func script(t *testing.T, content string) Options {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+content), 0o700))
	return Options{Binary: Binary{path: path}, Dir: dir}
}

func TestStopReportsHowTheProcessEnded(t *testing.T) {
	for name, c := range map[string]struct {
		content, want string
	}{
		"by itself, well":  {`exit 0`, "ended unexpectedly: exit status 0"},
		"by itself":        {`echo the reason; exit 3`, "the reason"},
		"when it was told": {`trap "exit 0" TERM; echo listens; while :; do sleep 0.01; done`, ""},
		"with an error":    {`trap "exit 4" TERM; echo listens; while :; do sleep 0.01; done`, "exit status 4"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Start(script(t, c.content))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return p.LogTail() == "listens" || ended(p) }, 10*time.Second,
				time.Millisecond)
			err = p.Stop()
			assert.Equal(t, err, p.Stop(), "a second time")
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.want)
			}
		})
	}
}

func ended(p *Process) bool {
	select {
	case <-p.Ended():
		return true
	default:
		return false
	}
}

func TestRestartIsAtTheSameAddresses(t *testing.T) {
	p, err := Start(script(t, `echo "$@"; exec sleep 600`))
	require.NoError(t, err)
	line := "run --http-address " + p.ProbeAddress + " --metrics-address " + p.Address + " --allow-anonymous=metrics"
	says := func(want string) {
		require.Eventually(t, func() bool { return p.LogTail() == want }, 10*time.Second, time.Millisecond)
	}
	says(line)
	require.NoError(t, p.Kill())
	require.NoError(t, p.Stop(), "it was to end")
	require.NoError(t, p.Restart())
	says(line + "\n" + line)
	require.Error(t, p.Stop(), "sleep does not end with exit status 0")
}

func TestFamilies(t *testing.T) {
	families, err := ParseMetrics(strings.NewReader(`# TYPE taken counter
taken{result="success",pod="a"} 2
taken{result="success",pod="b"} 3
taken{result="failure",pod="a"} 5
# TYPE age gauge
age{pod="a"} 7
`))
	require.NoError(t, err)
	assert.Equal(t, 10.0, families.Sum("taken"))
	assert.Equal(t, 5.0, families.Sum("taken", "result", "success"))
	assert.Equal(t, 3.0, families.Sum("taken", "result", "success", "pod", "b"))
	assert.Zero(t, families.Sum("taken", "node", "a"))
	assert.Equal(t, 7.0, families.Sum("age", "node", ""))
	_, known := families.Gauge("age", "pod", "b")
	assert.False(t, known)
	age, known := families.Gauge("age", "pod", "a")
	assert.True(t, known)
	assert.Equal(t, 7.0, age)
	families, err = ParseMetrics(strings.NewReader("age 1\nno metrics{"))
	require.Error(t, err)
	assert.Empty(t, families)
}

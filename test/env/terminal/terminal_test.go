package terminal

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFirstSignalEndsTheContextAndLaterOnesDoNothing(t *testing.T) {
	ctx, stop := withSignals(t.Context())
	defer stop()
	for range 3 {
		require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGINT))
	}
	<-ctx.Done()
	var signalled interrupted
	require.ErrorAs(t, context.Cause(ctx), &signalled)
	assert.Equal(t, syscall.SIGINT, signalled.signal)
}

func TestTailKeepsTheLastLines(t *testing.T) {
	var logs tail
	for range keptLines {
		_, _ = logs.Write([]byte("old\n"))
	}
	_, err := logs.Write([]byte("new\n"))
	require.NoError(t, err)
	assert.Equal(t, keptLines, len(logs.lines))
	assert.Contains(t, logs.String(), "old\nnew\n")
}

func TestScreenIsLeftAsItWasFound(t *testing.T) {
	var out strings.Builder
	d := newScreen(&out, true, func() (int, int, error) { return 0, 0, errors.New("no terminal") },
		func(text string, columns, rows int) []Line {
			assert.Equal(t, [2]int{80, 24}, [2]int{columns, rows}, "of a terminal that does not report its size")
			return []Line{{Strong.Text(text)}, {Normal.Text("below")}}
		})
	d.Show("first")
	d.Close()
	assert.Equal(t, enterScreen+home+"\x1b[1mfirst\x1b[0m"+clearLine+"\r\nbelow"+clearLine+clearBelow+leaveScreen,
		out.String())
}

func TestDueOnceInAPeriod(t *testing.T) {
	e := Every{Period: 5 * time.Second}
	var due []int
	for seconds := range 21 {
		if e.Due(time.Duration(seconds) * time.Second) {
			due = append(due, seconds)
		}
	}
	assert.Equal(t, []int{0, 5, 10, 15, 20}, due)
}

func TestExitCodes(t *testing.T) {
	for args, want := range map[string]int{"": 0, "fail": exitFailed, "left": exitFailed, "--no-such-flag": exitUsage} {
		var progress strings.Builder
		command := &cobra.Command{Use: "play", Args: cobra.ArbitraryArgs,
			RunE: func(_ *cobra.Command, args []string) error {
				switch {
				case len(args) == 0:
					return nil
				case args[0] == "left":
					return Leftover{errors.New("it does not end")}
				}
				return errors.New("it does not work")
			}}
		assert.Equal(t, want, Execute(command, strings.Fields(args), &progress), "%q", args)
		assert.Equal(t, want != 0, strings.HasPrefix(progress.String(), "play: "), progress.String())
	}
}

func TestWrap(t *testing.T) {
	assert.Empty(t, Wrap("", 10, 2))
	assert.Equal(t, []string{"one two", "three"}, Wrap("one two three", 8, 2))
	assert.Equal(t, []string{"one two", "three f…"}, Wrap("one two three four", 8, 2))
	for _, row := range Wrap(strings.Repeat("abc ", 50), 20, 3) {
		assert.LessOrEqual(t, utf8.RuneCountInString(row), 20)
	}
}

package replay

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadNamesTheUnusableLine(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		line  int
		want  string
	}{
		"the first": {
			[]string{`x`, `{"run":1}`}, 1, "line 1: not a JSON object",
		},
		"blank lines count": {
			[]string{``, `{"run":1}`, "  \t", `{"run":true}`}, 4, "line 4: run: true: must be",
		},
		"line ends of Windows": {
			[]string{"{\"run\":1}\r", "{\"run\":1,\r"}, 2, "line 2: not a JSON object",
		},
		"end before start": {
			[]string{`{"instance":"a","start":2000}`, `{"instance":"b","start":0}`, `{"instance":"a","end":1999}`},
			3, `line 3: end: 1999: must be at least the start of instance "a", which line 1 gives as 2000`,
		},
		"start after end": {
			[]string{`{"instance":"a","end":1999}`, `{"instance":"a","start":2000}`},
			2, `line 2: start: 2000: must be at most the end of instance "a", which line 1 gives as 1999`,
		},
		"end before start on one line": {
			[]string{`{"instance":"a","start":2,"end":1}`},
			1, `line 1: end: 1: must be at least the start of instance "a", which line 1 gives as 2`,
		},
		"two starts": {
			[]string{`{"instance":"a","start":1}`, `{"instance":"a","start":1}`},
			2, `line 2: start: 1: must be given once for instance "a", and line 1 gives 1; an instance that comes back needs an ID of its own`,
		},
		"two ends": {
			[]string{`{"instance":"a","end":1}`, `{"run":5}`, `{"instance":"\u0061","end":7}`},
			3, `line 3: end: 7: must be given once for instance "a", and line 1 gives 1`,
		},
		"a line without end": {
			[]string{`{"run":1}`, strings.Repeat(" ", maxLine+1)}, 2,
			"line 2: the line is too long: must be at most 1048576 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(strings.Join(c.lines, "\n")))
			require.ErrorContains(t, err, c.want)
			var at *LineError
			require.ErrorAs(t, err, &at)
			assert.Equal(t, c.line, at.Line)
		})
	}
}

func TestReadKeepsEarlierLines(t *testing.T) {
	rec, err := Read(strings.NewReader(`{"run":20}` + "\n" + `{"instance":"a","t":1,"v":2}` + "\n" + `{"run":10}` + "\nstop\n" + `{"run":30}`))
	require.ErrorContains(t, err, "line 4")
	assert.Equal(t, []int64{10, 20}, rec.runs)
	assert.Len(t, rec.samples, 1)
}

func TestReadReturnsReadErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := Read(io.MultiReader(strings.NewReader("{\"run\":1}\n"), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	assert.ErrorContains(t, err, "line 2: the disk is gone")
}

func TestAnInstanceMayEndAtItsStart(t *testing.T) {
	_, err := Read(strings.NewReader(`{"instance":"a","start":5,"end":5}`))
	assert.NoError(t, err)
}

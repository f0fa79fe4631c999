package docpages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReplaceChangesOneSection(t *testing.T) {
	const page = "before\n<!-- generated: a -->\nold\n<!-- end generated -->\nbetween\n<!-- generated: b -->\n<!-- end generated -->\n"
	replaced, err := Replace(page, "a", "new\n")
	require.NoError(t, err)
	assert.Equal(t, "before\n<!-- generated: a -->\nnew\n<!-- end generated -->\nbetween\n<!-- generated: b -->\n<!-- end generated -->\n", replaced)

	_, err = Replace(page, "c", "new")
	assert.ErrorContains(t, err, "generated: c")
	_, err = Replace("<!-- generated: a -->\n", "a", "new")
	assert.ErrorContains(t, err, "end generated")
}

func TestTableEscapesBars(t *testing.T) {
	assert.Equal(t, "| flag | default |\n|---|---|\n| `--a` | x\\|y |\n| `--b` | |\n",
		Table([][]string{{"flag", "default"}, {"`--a`", "x|y"}, {"`--b`", ""}}))
}

func TestSummaryIsAClauseThatStandsAlone(t *testing.T) {
	assert.Equal(t, "How far a rise is trusted.",
		Summary("How far a rise is trusted: a rise by\nthis counts half. Default: 2."))
	assert.Equal(t, "Linear: the metric halves.", Summary("Linear: the metric halves. Quadratic: another."))
	assert.Equal(t, "Such as apps/v1.", Summary("Such as apps/v1."))
}

func TestListWrapsItsEntries(t *testing.T) {
	assert.Equal(t, "- `--a` (1s): short\n- `--b`: x\n", List([]Entry{{"--a", "1s", "short"}, {"--b", "", "x"}}))
	long := List([]Entry{{"--a", "", strings.Repeat("12345678 ", 12)}})
	assert.Equal(t, "- `--a`:"+strings.Repeat(" 12345678", 10)+"\n  12345678 12345678\n", long)
}

func TestBlocksLoseTheIndentationOfTheirFence(t *testing.T) {
	page := Page{Path: "p.md", Text: "one\n\n   ```yaml\n   a:\n     b: 1\n   ```\n```\ntext\n```\n"}
	assert.Equal(t, []Block{
		{Where: "p.md:3", Language: "yaml", Text: "a:\n  b: 1\n"},
		{Where: "p.md:7", Text: "text\n"},
	}, page.Blocks())
}

func TestCommands(t *testing.T) {
	page := Page{Path: "p.md", Text: "Run `make demo` or `foresail run --enable\nadapter`.\n\n```sh\n" +
		"foresail simulate --out 'a b' # a comment\ncat > k.yaml <<'END'\nfoo: bar\nEND\nkubectl get pm -o yaml | foresail backtest \\\n  --trace x.csv\n```\n" +
		"```\n$ foresail version\nforesail run\n```\n"}
	assert.Equal(t, []Command{
		{Where: "p.md:4", Words: []string{"foresail", "simulate", "--out", "a b"}},
		{Where: "p.md:4", Words: []string{"cat"}},
		{Where: "p.md:4", Words: []string{"kubectl", "get", "pm", "-o", "yaml"}},
		{Where: "p.md:4", Words: []string{"foresail", "backtest", "--trace", "x.csv"}},
		{Where: "p.md:12", Words: []string{"foresail", "version"}},
		{Where: "p.md:1", Mention: true, Words: []string{"make", "demo"}},
		{Where: "p.md:1", Mention: true, Words: []string{"foresail", "run", "--enable", "adapter"}},
	}, page.Commands())
	assert.Equal(t, []string{"foo: bar\n"}, page.Blocks()[0].HereDocuments())
	args, ok := Command{Words: []string{"go", "run", "./cmd/foresail", "replay"}}.Foresail()
	assert.True(t, ok)
	assert.Equal(t, []string{"replay"}, args)
}

func TestRedirectionsAreNotArguments(t *testing.T) {
	assert.Equal(t, [][]string{{"foresail", "run"}, {"wait"}},
		CommandLines("foresail run 2> out/foresail.log &\nwait >> log"))
}

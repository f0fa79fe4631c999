package report_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/lab/report"
	"github.com/foresail/foresail/internal/lab/report/chart"
)

type thing struct {
	name string
	size float64
}

func small() *report.Report {
	columns := []report.Column[thing]{
		report.Text("THING", func(t thing) string { return t.name }),
		report.Number("SIZE", 1, func(t thing) float64 { return t.size }),
	}
	things := []thing{{"long one", 1}, {"<b>", math.NaN()}}
	out := &report.Report{Name: "Things & more"}
	out.Say(report.Finding, "One is <b>.")
	out.Show(report.Section, "On the page")
	out.Keys(report.Key{Name: "largest", Value: "1", Against: "none"})
	out.Indent = "  "
	out.Print("", "On the terminal")
	out.Table(report.TableOf(columns, things, func(t thing) bool { return t.size == 1 }))
	out.Indent = ""
	out.Table(nil)
	return out
}

func TestAReportOnATerminal(t *testing.T) {
	var b strings.Builder
	require.NoError(t, small().WriteText(&b))
	assert.Equal(t, "One is <b>.\n\n  On the terminal\n  THING     SIZE\n  long one  1.0\n  <b>       -\n", b.String())

	right := report.NewTable("", "A")
	right.Right = true
	right.Add("x", "10")
	right.Rows[0].Cells[1].Interval = "9 to 11"
	var out report.Report
	out.PrintTable(right)
	b.Reset()
	require.NoError(t, out.WriteText(&b))
	assert.Equal(t, "                A\n  x  10 (9 to 11)\n", b.String())
}

func TestAReportOnAPage(t *testing.T) {
	var b strings.Builder
	require.NoError(t, small().WritePage(&b))
	page := b.String()
	assert.Contains(t, page, "<title>Things &amp; more</title>")
	assert.Contains(t, page, `<p class="finding">One is &lt;b&gt;.</p>`+"\n<h2>On the page</h2>")
	assert.Contains(t, page, "<dt>largest</dt><dd>1<small>none</small></dd>")
	assert.Contains(t, page, `<tr class="marked"><td data-head="THING"><span>long one</span></td>`)
	assert.NotContains(t, page, "terminal")
}

func TestFilesOfAReport(t *testing.T) {
	r := small()
	r.Sheet("sizes", [][]string{{"name", "size"}, {"a,b", "1"}})
	r.Chart("drawn", chart.Page{Title: "drawn", Columns: 1, Width: 100, Height: 100})
	dir := filepath.Join(t.TempDir(), "made")
	require.NoError(t, r.Save(dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"drawn.png", "drawn.svg", "report.html", "sizes.csv"}, names)
	sizes, err := os.ReadFile(filepath.Join(dir, "sizes.csv"))
	require.NoError(t, err)
	assert.Equal(t, "name,size\n\"a,b\",1\n", string(sizes))

	require.NoError(t, (&report.Report{}).Save(filepath.Join(dir, "none")))
	assert.NoFileExists(t, filepath.Join(dir, "none", "report.html"), "without a name there is no page")
}

func TestNumbers(t *testing.T) {
	assert.Empty(t, report.Decimal(math.Inf(1), 2))
	assert.Empty(t, report.Percent(math.NaN(), 2))
	assert.Equal(t, "0.00", report.Decimal(-0.001, 2))
	assert.Equal(t, "12.3%", report.Percent(0.1234, 1))
	for v, want := range map[float64]string{0: "0", -0.01: "0", 1: "1", 9.94: "9.9", 9.95: "10", 123.4: "123",
		-2.5: "-2.5"} {
		assert.Equal(t, want, report.Brief(v))
	}
	assert.Equal(t, "less than 0.1%", report.BriefPercent(0.0001))
	assert.Equal(t, "5.0% more", report.More(1.05, 1, "less"))
	assert.Equal(t, "50% fewer", report.More(0.5, 0, "fewer"))
	assert.Empty(t, report.More(1.004, 0, "less"))
	assert.Empty(t, report.More(math.NaN(), 0, "less"))
	assert.Equal(t, "1 seed", report.Count(1, "seed"))
	assert.Equal(t, "0 seeds", report.Count(0, "seed"))
}

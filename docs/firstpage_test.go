package docs_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFirstPageIsShort keeps README.md at a length that is read before a decision, without scrolling sideways.
func TestFirstPageIsShort(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(pages(t)["../README.md"], "\n"), "\n")
	assert.LessOrEqual(t, len(lines), 90)
	for i, line := range lines {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 100, "README.md:%d", i+1)
	}
}

// TestEveryPageIsInTheIndex checks that docs/README.md links every page, and decisions/README.md every
// decision, so that each can be found from the first page.
func TestEveryPageIsInTheIndex(t *testing.T) {
	all := pages(t)
	require.Contains(t, all["../README.md"], "(docs/README.md)")
	linked := slices.Concat(linksOf(all, "README.md"), linksOf(all, "decisions/README.md"))
	for page := range all {
		if page != "README.md" {
			assert.True(t, slices.Contains(linked, page), "no index has a link to %s", page)
		}
	}
}

// linksOf returns the pages that a page links.
func linksOf(all map[string]string, page string) (linked []string) {
	for _, match := range link.FindAllStringSubmatch(all[page], -1) {
		file, _, _ := strings.Cut(match[1], "#")
		linked = append(linked, filepath.Join(filepath.Dir(page), file))
	}
	return linked
}

// TestWhatWaitsForAReleaseIsInOnePlace keeps commands that fail before a release out of all other
// instructions. The page on releases shows how to verify one, and the changelog names what one has.
func TestWhatWaitsForAReleaseIsInOnePlace(t *testing.T) {
	all := pages(t)
	before, section, ok := strings.Cut(all["install.md"], "\n## Once a release is published\n")
	require.True(t, ok)
	all["install.md"] = before
	delete(all, "releasing.md")
	chart, err := os.ReadFile("../manifests/chart/foresail/README.md")
	require.NoError(t, err)
	all["../manifests/chart/foresail/README.md"] = string(chart)
	for _, waits := range []string{"/releases/latest/", "foresail@latest", "oci://ghcr.io/foresail"} {
		assert.Contains(t, section, waits)
		for page, text := range all {
			assert.NotContains(t, text, waits, "%s: this belongs to install.md, below \"Once a release is published\"",
				page)
		}
	}
}

// TestPriceIsMeasured compares the sentences on the price with the figures that they sum up, to two
// points of a per cent.
func TestPriceIsMeasured(t *testing.T) {
	const points = 0.02
	of := func(profile string) []float64 {
		return slices.Concat(
			costs(t, "live/summary.csv", "pod_seconds", "profile", profile),
			costs(t, "paper/intervals.csv", "pod_seconds", "profile", profile))
	}
	ramp, spike := of("ramp"), of("spike")
	var days []float64
	for _, trace := range []string{"twitter", "nasa", "nab"} {
		days = append(days, costs(t, trace+"/summary.csv", "pod_hours")...)
	}
	for _, price := range []struct {
		words       string
		ratios      []float64
		least, most float64
		pages       []string
	}{
		{"a seventh to a third more pods than KEDA", ramp, 1 + 1./7, 1 + 1./3, []string{"../README.md", "fit.md"}},
		{"on a spike from nothing 53% to 56% more", spike, 1.53, 1.56, []string{"fit.md"}},
		{"over days of recorded traffic between 1% fewer and 11% more", days, 0.99, 1.11, []string{"fit.md"}},
		{"between 1% fewer and 11% more over days of recorded traffic", days, 0.99, 1.11, []string{"../README.md"}},
	} {
		for _, page := range price.pages {
			assert.Contains(t, strings.Join(strings.Fields(pages(t)[page]), " "), price.words, page)
		}
		assert.InDelta(t, price.least, slices.Min(price.ratios), points, price.words)
		assert.InDelta(t, price.most, slices.Max(price.ratios), points, price.words)
	}
}

// costs returns the cost of foresail-total as a multiple of that of keda, for each pair of lines of a file
// of figures that has the given values of columns.
func costs(t *testing.T, file, column string, where ...string) (ratios []float64) {
	t.Helper()
	source, err := os.Open(filepath.Join("figures", file))
	require.NoError(t, err)
	defer func() { assert.NoError(t, source.Close()) }()
	records, err := csv.NewReader(source).ReadAll()
	require.NoError(t, err)
	cell := func(record []string, column string) string {
		i := slices.Index(records[0], column)
		require.GreaterOrEqual(t, i, 0, "%s has no column %s", file, column)
		return record[i]
	}
	spent := map[string]map[string]float64{} // by scaler, by what else names the line
	for _, record := range records[1:] {
		if len(where) > 0 && cell(record, where[0]) != where[1] {
			continue
		}
		scaler, run := cell(record, "scaler"), ""
		if slices.Contains(records[0], "where") {
			run = cell(record, "where")
		}
		if spent[scaler] == nil {
			spent[scaler] = map[string]float64{}
		}
		spent[scaler][run], err = strconv.ParseFloat(cell(record, column), 64)
		require.NoError(t, err)
	}
	require.NotEmpty(t, spent["keda"], fmt.Sprintf("%s %v", file, where))
	for run, keda := range spent["keda"] {
		require.Contains(t, spent["foresail-total"], run, file)
		ratios = append(ratios, spent["foresail-total"][run]/keda)
	}
	return ratios
}

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	testName = regexp.MustCompile("`([a-z0-9]+\\.Test\\w+)`")
)

// testsThatThereAre are the tests of packages in some folders, by the last part of the package's path.
func testsThatThereAre(t *testing.T, roots ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, root := range roots {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, match := range testFunc.FindAllStringSubmatch(string(source), -1) {
				found[filepath.Base(filepath.Dir(path))+"."+match[1]] = true
			}
			return err
		}))
	}
	return found
}

// TestEveryOutcomeIsTested holds the tables of what happens to tests that there are.
func TestEveryOutcomeIsTested(t *testing.T) {
	there := testsThatThereAre(t, "../nodepool", "../internal/cli", "../test/suite/nodepool", "../adapter/scheduler/extender", "../adapter/scheduler/nodeusage", "../test/suite/extender")
	for page, least := range map[string]int{"nodepool.md": 30, "extender.md": 15} {
		t.Run(page, func(t *testing.T) { assert.Greater(t, outcomes(t, pages(t)[page], there), least) })
	}
}

// TestTestsThatPagesNameExist holds pages that name tests beside their tables to tests that there are.
func TestTestsThatPagesNameExist(t *testing.T) {
	for page, c := range map[string]struct {
		roots []string
		least int
	}{
		"operating.md": {[]string{"../adapter/apiservice", "../test/suite/apiservice"}, 6},
		"rollouts.md":  {[]string{"../test/suite/e2e"}, 2},
	} {
		there := testsThatThereAre(t, c.roots...)
		named := testName.FindAllStringSubmatch(pages(t)[page], -1)
		assert.GreaterOrEqual(t, len(named), c.least, page)
		for _, name := range named {
			assert.True(t, there[name[1]], "%s: there is no test %s", page, name[1])
		}
	}
}

// TestEveryOutcomeOfForwardingIsTested holds the table of what happens to forwarded reads to tests that there are.
func TestEveryOutcomeOfForwardingIsTested(t *testing.T) {
	_, section, ok := strings.Cut(pages(t)["forwarding.md"], "\n## What happens when …\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	assert.Greater(t, rows(t, section, "situation", 3, testsThatThereAre(t, "../adapter/door/externalmetrics", "../adapter/apiservice")), 8)
}

// TestEveryOutcomeOfObjectMetricsIsTested holds the table of what happens to Object metrics to tests that there are.
func TestEveryOutcomeOfObjectMetricsIsTested(t *testing.T) {
	there := testsThatThereAre(t, "../adapter/apiservice", "../adapter/door/custommetrics", "../test/suite/apiservice")
	_, section, ok := strings.Cut(pages(t)["objectmetric.md"], "\n## What happens when …\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	assert.Greater(t, rows(t, section, "situation", 3, there), 5)
}

// TestEveryLineOfSecurityIsTested holds the tables of what others can cause to tests that there are.
func TestEveryLineOfSecurityIsTested(t *testing.T) {
	there := testsThatThereAre(t, "../adapter", "../cmd", "../internal", "../manifests", "../nodepool", "../pipeline",
		"../test/suite/e2e", "../test/suite/apiservice", "../test/suite/tenants")
	page := pages(t)["security.md"]
	shares, rest, found := strings.Cut(page, "\n## Whoever runs pods\n")
	require.True(t, found)
	assert.Greater(t, rows(t, shares, "scarce, and divided by", 3, there), 5)
	assert.Greater(t, rows(t, rest, "can try to", 3, there), 20)
	for _, name := range testName.FindAllStringSubmatch(page, -1) {
		assert.True(t, there[name[1]], "there is no test %s", name[1])
	}
}

// outcomes is rows of the section on what happens.
func outcomes(t *testing.T, page string, there map[string]bool) int {
	t.Helper()
	_, section, ok := strings.Cut(page, "\n## What happens when …\n")
	require.True(t, ok)
	section, _, ok = strings.Cut(section, "\n## ")
	require.True(t, ok)
	return rows(t, section, "situation", 4, there)
}

// rows fails the test unless each row of the tables, whose first title is given, names tests that there are in the last of its
// columns. It returns how many rows there are.
func rows(t *testing.T, text, title string, columns int, there map[string]bool) (n int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| "+title+" ") {
			continue
		}
		n++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		require.Len(t, cells, columns, line)
		named := testName.FindAllStringSubmatch(cells[columns-1], -1)
		assert.NotEmpty(t, named, line)
		for _, name := range named {
			assert.True(t, there[name[1]], "there is no test %s", name[1])
		}
	}
	return n
}

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	testFunc     = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(\w+ \*testing\.[TF]\)`)
	testName     = regexp.MustCompile("`([a-z0-9]+\\.(?:Test|Fuzz)\\w+)`")
	promisedPage = regexp.MustCompile(`^## \[(docs/[a-z-]+\.md)\]\(\.\./(docs/[a-z-]+\.md)\)$`)
)

// TestPromisesAreKept checks that the pages and the tests exist that test/promises.md names, and that each of
// its rows names a test.
func TestPromisesAreKept(t *testing.T) {
	table, err := os.ReadFile("../test/promises.md")
	require.NoError(t, err)
	exist := existingTests(t)
	rows := 0
	for line := range strings.Lines(string(table)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "## "):
			page := promisedPage.FindStringSubmatch(line)
			require.NotNil(t, page, line)
			assert.Equal(t, page[1], page[2])
			assert.FileExists(t, filepath.Join("..", page[1]))
		case strings.HasPrefix(line, "| ") && line != "| situation | promise | tests |":
			rows++
			cells := strings.Split(strings.Trim(line, "|"), "|")
			require.Len(t, cells, 3, line)
			named := testName.FindAllStringSubmatch(cells[2], -1)
			assert.NotEmpty(t, named, line)
			for _, name := range named {
				assert.True(t, exist[name[1]], "there is no test %s", name[1])
			}
		}
	}
	assert.Greater(t, rows, 200)
}

// TestPagesNameNoTests keeps names of tests in test/promises.md. Pages on how Foresail is built may name one.
func TestPagesNameNoTests(t *testing.T) {
	for page, text := range pages(t) {
		assert.Empty(t, testName.FindAllString(text, -1), "%s: name it in test/promises.md", page)
	}
}

// existingTests returns the tests and fuzz tests of the repository by their name after the last part of the
// package's path.
func existingTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, root := range slices.Concat(sourceRoots, []string{"docs", "manifests", "test"}) {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", root),
			func(path string, _ fs.DirEntry, err error) error {
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

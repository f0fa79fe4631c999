// Package docs_test checks the documentation against the code: blocks are valid, tests exist, links resolve,
// tables of figures are up to date. cmd/foresail checks command lines, internal/cli/serve tables of flags and
// metrics.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/adapter/scheduler/nodeusage"
	"github.com/foresail/foresail/internal/docpages"
)

// pages returns the pages by their paths from here.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{
		"*.md", "decisions/*.md", "reference/*.md", "../README.md", "../CONTRIBUTING.md", "../SECURITY.md",
	} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			found[file] = string(text)
		}
	}
	return found
}

var (
	directModule = regexp.MustCompile(`(?m)^\t(\S+) v\S+$`)
	moduleInList = regexp.MustCompile("`([^`]+/[^`]+)`")
)

// TestDependenciesAreExplained compares the modules that go.mod names directly with the page on their uses.
func TestDependenciesAreExplained(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	modules := func(found [][]string) (names []string) {
		for _, match := range found {
			names = append(names, match[1])
		}
		return names
	}
	direct := modules(directModule.FindAllStringSubmatch(string(mod), -1))
	require.NotEmpty(t, direct)
	var explained []string
	for entry := range strings.SplitSeq(pages(t)["decisions/dependencies.md"], "\n- ") {
		names, _, _ := strings.Cut(entry, ":")
		explained = append(explained, modules(moduleInList.FindAllStringSubmatch(names, -1))...)
	}
	assert.ElementsMatch(t, direct, explained)
}

var nodeQuery = regexp.MustCompile(`--extender-(?:cpu|memory)-query='([^']+)'`)

// TestQueriesOfNodesHaveARange checks the examples by Foresail's own rule.
func TestQueriesOfNodesHaveARange(t *testing.T) {
	queries := nodeQuery.FindAllStringSubmatch(pages(t)["extender.md"], -1)
	assert.Len(t, queries, 4)
	for _, match := range queries {
		assert.Equal(t, time.Minute, nodeusage.LookBack(match[1]), match[1])
	}
}

// TestFigureTablesAreGenerated compares the tables of figures in the pages with the files in figures, or
// writes them (`make docs`).
func TestFigureTablesAreGenerated(t *testing.T) {
	tables, err := docpages.FigureTables("figures")
	require.NoError(t, err)
	for name, text := range tables {
		shown := 0
		for page, content := range pages(t) {
			if docpages.HasSection(content, name) {
				shown++
				docpages.Verify(t, page, name, text)
			}
		}
		assert.Equal(t, 1, shown, "pages with the table %s", name)
	}
}

var packageName = regexp.MustCompile("`([a-z][a-z0-9/]+)`")

// TestArchitectureNamesEveryPackage compares the list of packages in architecture.md with the folders that
// have code. Folders below test need no entry.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	var named []string
	_, list, _ := strings.Cut(pages(t)["architecture.md"], "\n## Packages\n")
	for entry := range strings.SplitSeq(list, "\n- ") {
		names, _, _ := strings.Cut(entry, ": ")
		for _, match := range packageName.FindAllStringSubmatch(names, -1) {
			named = append(named, match[1])
			assert.DirExists(t, filepath.Join("..", match[1]))
		}
	}
	require.NotEmpty(t, named)
	for _, root := range sourceRoots {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", root),
			func(path string, _ fs.DirEntry, err error) error {
				if err != nil || filepath.Ext(path) != ".go" {
					return err
				}
				folder := strings.TrimPrefix(filepath.Dir(path), "../")
				if !strings.HasSuffix(folder, "test") && !slices.Contains(named, folder) {
					assert.Fail(t, "architecture.md does not name "+folder)
					named = append(named, folder)
				}
				return nil
			}))
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^a-z0-9 _-]`)
)

func TestLinksResolve(t *testing.T) {
	for page, text := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(match[1], "#")
			path := page
			if file != "" {
				path = filepath.Join(filepath.Dir(page), file)
			}
			content, err := os.ReadFile(path)
			if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
				continue
			}
			if assert.NoError(t, err, page) && anchor != "" {
				assert.True(t, slices.Contains(anchors(string(content)), anchor), "%s: %s", page, match[1])
			}
		}
	}
}

var (
	codeLink  = regexp.MustCompile(`\bdocs/((?:[a-z-]+/)?[a-z-]+\.md)(?:#([a-z0-9-]+))?`)
	textFiles = []string{".go", ".yaml", ".json", ".txt", ".tpl", ".tf", ".md"}
	// sourceRoots are the folders that have packages of the program.
	sourceRoots = []string{"adapter", "api", "cmd", "internal", "nodepool", "pipeline"}
)

// wordsTest has pages that do not exist.
const wordsTest = "../internal/tools/words/words_test.go"

// TestLinksFromCodeResolve checks the pages and headings that code, manifests and messages name.
func TestLinksFromCodeResolve(t *testing.T) {
	found := 0
	for _, root := range slices.Concat(sourceRoots, []string{"manifests", "test", ".github"}) {
		visit := func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !slices.Contains(textFiles, filepath.Ext(path)) || path == wordsTest {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range codeLink.FindAllStringSubmatch(string(text), -1) {
				found++
				content, err := os.ReadFile(match[1])
				if assert.NoError(t, err, path) && match[2] != "" {
					assert.Contains(t, anchors(string(content)), match[2], "%s: %s", path, match[0])
				}
			}
			return err
		}
		require.NoError(t, filepath.WalkDir(filepath.Join("..", root), visit))
	}
	assert.NotZero(t, found)
}

// anchors returns the fragments by which links lead to the headings of a page.
func anchors(page string) []string {
	var found []string
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		plain := dropped.ReplaceAllString(strings.ToLower(match[1]), "")
		found = append(found, strings.ReplaceAll(plain, " ", "-"))
	}
	return found
}

// Package docgen reads the pages of the documentation for the tests that check them, and writes their generated sections.
//
// A generated section stands between two lines of its page, "<!-- generated: NAME -->" and "<!-- end generated -->".
package docgen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// updateVariable is the environment variable that has tests write generated sections instead of comparing them.
const updateVariable = "FORESAIL_UPDATE_DOCS"

const endMark = "<!-- end generated -->"

// Section returns what stands in the generated section of a page.
func Section(page, name string) (string, error) {
	start, end, err := bounds(page, name)
	if err != nil {
		return "", err
	}
	return page[start:end], nil
}

// Replace returns the page with other content in one of its generated sections.
func Replace(page, name, content string) (string, error) {
	start, end, err := bounds(page, name)
	if err != nil {
		return "", err
	}
	return page[:start] + strings.TrimRight(content, "\n") + "\n" + page[end:], nil
}

// bounds returns where the content of a generated section starts and ends.
func bounds(page, name string) (start, end int, err error) {
	mark := "<!-- generated: " + name + " -->\n"
	before, after, ok := strings.Cut(page, mark)
	if !ok {
		return 0, 0, fmt.Errorf("the page has no line %q", strings.TrimSpace(mark))
	}
	length := strings.Index(after, endMark)
	if length < 0 {
		return 0, 0, fmt.Errorf("the section %q has no line %q", name, endMark)
	}
	start = len(before) + len(mark)
	return start, start + length, nil
}

// Verify fails the test unless the generated section of a file has the given content. With FORESAIL_UPDATE_DOCS=1, as in
// `make docs`, it writes the content instead.
func Verify(t testing.TB, file, name, content string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	updated, err := Replace(string(text), name, content)
	require.NoError(t, err, file)
	if os.Getenv(updateVariable) != "" {
		require.NoError(t, os.WriteFile(file, []byte(updated), 0o644))
		return
	}
	assert.Equal(t, updated, string(text), "%s is out of date: run make docs", filepath.Base(file))
}

// Table returns a table in Markdown. Its first row is the header.
func Table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("|")
		for _, cell := range row {
			if cell != "" {
				b.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

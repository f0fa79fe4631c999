// Package docpages checks and generates the pages of the documentation: it finds their blocks and command
// lines for tests, writes their generated sections, and renders tables from the files in docs/figures.
//
// A generated section stands between two lines of its page, "<!-- generated: NAME -->" and "<!-- end generated -->".
package docpages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// updateVariable is the environment variable that has tests write generated sections instead of comparing them.
const updateVariable = "FORESAIL_UPDATE_DOCS"

const endMark = "<!-- end generated -->"

func startMark(name string) string { return "<!-- generated: " + name + " -->\n" }

// HasSection reports whether a page has a generated section of a name.
func HasSection(page, name string) bool { return strings.Contains(page, startMark(name)) }

// Replace returns the page with other content in one of its generated sections.
func Replace(page, name, content string) (string, error) {
	mark := startMark(name)
	before, after, ok := strings.Cut(page, mark)
	if !ok {
		return "", fmt.Errorf("the page has no line %q", strings.TrimSpace(mark))
	}
	_, rest, ok := strings.Cut(after, endMark)
	if !ok {
		return "", fmt.Errorf("the section %q has no line %q", name, endMark)
	}
	return before + mark + strings.TrimRight(content, "\n") + "\n" + endMark + rest, nil
}

// Verify fails the test unless the generated section of a file has the given content. With
// FORESAIL_UPDATE_DOCS=1, as in `make docs`, it writes the content instead.
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

// lineWidth is the number of columns that pages are wrapped at, tables apart.
const lineWidth = 100

// Entry is an entry of a generated reference.
type Entry struct {
	Name string // shown as code
	Note string // in brackets after the name, such as the default; may be empty
	Text string // may be empty, where the name has it all
}

// List returns entries as a list in Markdown.
func List(entries []Entry) string {
	var b strings.Builder
	for _, e := range entries {
		line := "- `" + e.Name + "`"
		if e.Note != "" {
			line += " (" + e.Note + ")"
		}
		if e.Text != "" {
			line += ": " + e.Text
		}
		b.WriteString(Wrap(line, "  "))
	}
	return b.String()
}

var (
	endOfSentence = regexp.MustCompile(`[a-z0-9)"'%]\.\s+[A-Z0-9-]`)
	endOfClause   = regexp.MustCompile(`[:;] `)
)

// fewWords is the number of words that a clause must have to stand alone.
const fewWords = 4

// Summary returns the first sentence of a description, without what follows a colon or a semicolon if its
// beginning can stand alone.
func Summary(description string) string {
	text := strings.Join(strings.Fields(description), " ")
	if end := endOfSentence.FindStringIndex(text); end != nil {
		text = text[:end[0]+2]
	}
	for _, end := range endOfClause.FindAllStringIndex(text, -1) {
		clause := text[:end[0]]
		closed := strings.Count(clause, "(") == strings.Count(clause, ")") && strings.Count(clause, "`")%2 == 0
		if closed && len(strings.Fields(clause)) >= fewWords {
			return clause + "."
		}
	}
	return text
}

// Wrap breaks a text into lines of at most 100 columns where its words allow. Lines after the first begin
// with indent.
func Wrap(text, indent string) string {
	var b strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		switch length := utf8.RuneCountInString(word); {
		case i == 0:
			width = length
		case width+1+length > lineWidth:
			b.WriteString("\n" + indent)
			width = len(indent) + length
		default:
			b.WriteString(" ")
			width += 1 + length
		}
		b.WriteString(word)
	}
	b.WriteString("\n")
	return b.String()
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

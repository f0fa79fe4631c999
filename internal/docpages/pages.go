package docpages

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Page is a page of the documentation.
type Page struct {
	Path string // below the root of the repository
	Text string
}

// Pages returns README.md, CHANGELOG.md and everything below docs, for a test that runs in a folder below root.
func Pages(t testing.TB, root string) []Page {
	t.Helper()
	paths := []string{"README.md", "CHANGELOG.md"}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			path, err = filepath.Rel(root, path)
			paths = append(paths, path)
		}
		return err
	}))
	var pages []Page
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		pages = append(pages, Page{Path: path, Text: string(text)})
	}
	return pages
}

// Block is a fenced block of a page, without the indentation of its fence.
type Block struct {
	Where    string // page and line
	Language string // "" for output and plain text
	Text     string
}

var fence = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")

// Blocks returns the fenced blocks of a page.
func (p Page) Blocks() []Block {
	var blocks []Block
	for _, m := range fence.FindAllStringSubmatchIndex(p.Text, -1) {
		indent, text := p.Text[m[2]:m[3]], p.Text[m[6]:m[7]]
		blocks = append(blocks, Block{
			Where:    fmt.Sprintf("%s:%d", p.Path, 1+strings.Count(p.Text[:m[0]], "\n")),
			Language: p.Text[m[4]:m[5]],
			Text:     strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n"+indent, "\n"), "\n"),
		})
	}
	return blocks
}

// Documents returns the YAML documents of a block.
func (b Block) Documents() []string { return strings.Split(b.Text, "\n---\n") }

var hereDocument = regexp.MustCompile(`(?ms)<<'?END'?.*?\n(.*?)^END$\n?`)

// HereDocuments returns the texts that the commands of a block write with <<'END'.
func (b Block) HereDocuments() []string {
	var texts []string
	for _, match := range hereDocument.FindAllStringSubmatch(b.Text, -1) {
		texts = append(texts, match[1])
	}
	return texts
}

// Command is a command line that a page shows.
type Command struct {
	Where   string   // page and line
	Mention bool     // stands in a sentence, where arguments may be left out
	Words   []string // the program, its flags and arguments
}

var inlineCode = regexp.MustCompile("`((?:foresail|make|go|kubectl) [^`]+)`")

// Commands returns the command lines of a page: those in blocks of sh, after a $ in blocks of output, and in
// sentences.
func (p Page) Commands() []Command {
	var commands []Command
	for _, block := range p.Blocks() {
		text := hereDocument.ReplaceAllString(block.Text, "\n")
		switch block.Language {
		case "sh":
		case "":
			var prompted []string
			for line := range strings.Lines(text) {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					prompted = append(prompted, command)
				}
			}
			text = strings.Join(prompted, "")
		default:
			continue
		}
		for _, words := range CommandLines(text) {
			commands = append(commands, Command{Where: block.Where, Words: words})
		}
	}
	prose := fence.ReplaceAllStringFunc(p.Text, func(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) })
	for _, m := range inlineCode.FindAllStringSubmatchIndex(prose, -1) {
		where := fmt.Sprintf("%s:%d", p.Path, 1+strings.Count(prose[:m[0]], "\n"))
		for _, words := range CommandLines(strings.ReplaceAll(prose[m[2]:m[3]], "\n", " ")) {
			commands = append(commands, Command{Where: where, Mention: true, Words: words})
		}
	}
	return commands
}

var redirection = regexp.MustCompile("^[0-9]*>>?$")

// withoutRedirections drops redirections, which a shell does not pass on. They have a space before the file here.
func withoutRedirections(words []string) []string {
	var kept []string
	for i, word := range words {
		if !redirection.MatchString(word) && (i == 0 || !redirection.MatchString(words[i-1])) {
			kept = append(kept, word)
		}
	}
	return kept
}

// CommandLines splits a shell script into commands and those into words. It knows quotes, comments, continued
// lines and what separates commands, and takes expansions for plain words.
func CommandLines(script string) [][]string {
	var commands [][]string
	var command []string
	var word strings.Builder
	var quote rune
	inWord, comment := false, false
	endWord := func() {
		if inWord {
			command = append(command, word.String())
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		if command = withoutRedirections(command); len(command) > 0 {
			commands = append(commands, command)
		}
		command = nil
	}
	for _, r := range strings.ReplaceAll(script, "\\\n", " ") + "\n" {
		switch {
		case comment:
			if comment = r != '\n'; !comment {
				endCommand()
			}
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '#' && !inWord:
			comment = true
		case slices.Contains([]rune("\n|;&"), r):
			endCommand()
		case r == ' ' || r == '\t':
			endWord()
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	return commands
}

// Foresail returns the arguments of a command line that runs foresail, by any of the ways that pages show.
func (c Command) Foresail() (args []string, ok bool) {
	switch {
	case c.Words[0] == "foresail" || c.Words[0] == "bin/foresail":
		return c.Words[1:], true
	case len(c.Words) > 2 && slices.Equal(c.Words[:3], []string{"go", "run", "./cmd/foresail"}):
		return c.Words[3:], true
	}
	return nil, false
}

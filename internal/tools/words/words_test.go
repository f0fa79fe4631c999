package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func check(t *testing.T, name, content string) []finding {
	t.Helper()
	rules, err := parseRules(wordsTxt)
	if err != nil {
		t.Fatal(err)
	}
	findings, err := checkTree(fstest.MapFS{name: &fstest.MapFile{Data: []byte(content)}}, rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestFindingsInGo(t *testing.T) {
	content := `// Package sample says nothing.
package sample

// How many nodes there are.
var count = 4

type pods struct{ beyondHelp int }

// A pods2 may begin with its article, and tests with a sentence.
type pods2 struct{}

// It is read again.
func TestNobodyIsRead() {
	sought := "stands beside it"
	_ = sought
	taken := "beside" // words:ok the rule itself
}

// words takes
// the place
// anew.
func words() {}

// ` + strings.Repeat("x", 118) + `

var a, b = "` + strings.Repeat("x", 118) + `", 1
`
	got := []string{}
	for _, f := range check(t, "a/sample.go", content) {
		got = append(got, strings.Join([]string{f.kind, strings.SplitN(content, "\n", f.line+1)[f.line-1]}, " "))
	}
	want := []string{
		"word // anew.",
		"name type pods struct{ beyondHelp int }",
		"word func TestNobodyIsRead() {",
		"name \tsought := \"stands beside it\"",
		"word \tsought := \"stands beside it\"",
		"doc // How many nodes there are.",
		"line // " + strings.Repeat("x", 118),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, f := range check(t, "a/sample_test.go", "package sample\n\nvar want = 1\n") {
		t.Errorf("a test may call what it wants want: %v", f)
	}
}

func TestFindingsInPages(t *testing.T) {
	long := strings.Repeat("word ", 21) + "\n"
	page := "Nobody reads this.\n" + long + "```sh\n" + long + "```\n| " + long
	got := []string{}
	for _, f := range check(t, "docs/page.md", page) {
		got = append(got, f.kind)
	}
	if want := []string{"word", "line"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if found := check(t, ".git/page.md", page); len(found) > 0 {
		t.Errorf("hidden folders are not checked: %v", found)
	}
}

// The list of folders that are not yet clean shrinks: one that is clean is itself a finding.
func TestCleanFoldersLeaveTheList(t *testing.T) {
	kept := notYetTxt
	t.Cleanup(func() { notYetTxt = kept })
	notYetTxt = "docs\nclean\n"
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "docs", "page.md"), []byte("Nobody.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for all, want := range map[bool]string{
		false: "internal/tools/words/notyet.txt: clean has no finding: remove it from the list\n",
		true: "docs/page.md:1: word: \"Nobody\": no component, another writer, every caller: name it\n" +
			"internal/tools/words/notyet.txt: clean has no finding: remove it from the list\n",
	} {
		var out bytes.Buffer
		if failed, err := run(&out, root, nil, all, false); err != nil || !failed || out.String() != want {
			t.Errorf("all %v: got %v, %v\n%s", all, failed, err, out.String())
		}
	}
}

// Command words finds in the repository what docs and comments ought to say otherwise: words and
// forms that words.txt lists, doc comments that do not begin with the name of what they describe,
// and lines that are too long.
//
//	words [-all] [-count] ROOT [FOLDER ...]
//
// Folders that notyet.txt names are left out, except with -all; a folder that is named there and
// has no finding is one itself, so that the list can only shrink.
package main

import (
	"bufio"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed words.txt
var wordsTxt string

//go:embed notyet.txt
var notYetTxt string

func main() {
	all := flag.Bool("all", false, "also report folders that notyet.txt names")
	count := flag.Bool("count", false, "print findings of each folder and kind, of all folders, and exit with 0")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	failed, err := run(os.Stdout, flag.Arg(0), flag.Args()[1:], *all, *count)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

// run checks the folders below root, or all, and reports whether it printed a finding that fails the lint.
func run(out io.Writer, root string, folders []string, all, count bool) (bool, error) {
	rules, err := parseRules(wordsTxt)
	if err != nil {
		return false, err
	}
	findings, err := checkTree(os.DirFS(root), rules, folders)
	if err != nil {
		return false, err
	}
	notYet := lines(notYetTxt)
	if count {
		printCounts(out, findings, notYet)
		return false, nil
	}
	failed := false
	with := map[string]bool{}
	for _, f := range findings {
		with[path.Dir(f.file)] = true
		if all || !slices.Contains(notYet, path.Dir(f.file)) {
			fmt.Fprintf(out, "%s:%d: %s: %s\n", f.file, f.line, f.kind, f.message)
			failed = true
		}
	}
	for _, folder := range notYet {
		if len(folders) == 0 && !with[folder] {
			fmt.Fprintf(out, "internal/tools/words/notyet.txt: %s has no finding: remove it from the list\n", folder)
			failed = true
		}
	}
	return failed, nil
}

// finding is one place that the lint asks to change.
type finding struct {
	file    string
	line    int
	kind    string // word, name, doc or line
	message string
}

var kinds = []string{"word", "name", "doc", "line"}

// checkTree returns the findings in files of tree, in the order of their paths.
func checkTree(tree fs.FS, rules []rule, folders []string) ([]finding, error) {
	var findings []finding
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if ignored(name) {
				return fs.SkipDir
			}
			return nil
		}
		if len(folders) > 0 && !slices.Contains(folders, path.Dir(name)) {
			return nil
		}
		check := checkerOf(name)
		if check == nil {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if strings.Contains(string(content[:min(len(content), 4096)]), "Code generated ") { // its source is checked
			return nil
		}
		found, err := check(name, content, rules)
		findings = append(findings, found...)
		return err
	})
	return findings, err
}

// ignored reports whether a folder holds no text to check: hidden ones, programs, what is
// generated, and the lists of words.
func ignored(folder string) bool {
	base := path.Base(folder)
	hidden := strings.HasPrefix(base, ".") && base != "." && base != ".github" && base != ".ci"
	generated := folder == "manifests/crds" || folder == "manifests/chart/foresail/templates/crds" // from api
	return hidden || generated || base == "node_modules" || base == "bin" || folder == "internal/tools/words"
}

// checkerOf returns the check for a file, or nil.
func checkerOf(name string) func(string, []byte, []rule) ([]finding, error) {
	switch filepath.Ext(name) {
	case ".go":
		return checkGo
	case ".md":
		return checkPage
	case ".yaml", ".yml", ".tpl", ".html", ".js", ".py", ".sh", ".tf", ".proto":
		return checkText
	}
	if base := path.Base(name); base == "Makefile" || base == "Dockerfile" || name == ".ci/run" {
		return checkText
	}
	return nil
}

// printCounts writes a table: folder, findings of each kind, and a mark for folders that notyet.txt names.
func printCounts(out io.Writer, findings []finding, notYet []string) {
	counts, totals := map[string]map[string]int{}, map[string]int{}
	for _, f := range findings {
		folder := path.Dir(f.file)
		if counts[folder] == nil {
			counts[folder] = map[string]int{}
		}
		counts[folder][f.kind]++
		totals[f.kind]++
	}
	folders := slices.Clone(notYet)
	for folder := range counts {
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	fmt.Fprintf(out, "%6s %6s %6s %6s  folder (* not yet enforced)\n", kinds[0], kinds[1], kinds[2], kinds[3])
	for _, folder := range slices.Compact(folders) {
		mark := ""
		if slices.Contains(notYet, folder) {
			mark = " *"
		}
		row := counts[folder]
		fmt.Fprintf(out, "%6d %6d %6d %6d  %s%s\n", row["word"], row["name"], row["doc"], row["line"], folder, mark)
	}
	fmt.Fprintf(out, "%6d %6d %6d %6d  all\n", totals["word"], totals["name"], totals["doc"], totals["line"])
}

// lines returns the lines of a data file without comments and empty ones.
func lines(text string) []string {
	var out []string
	for scanner := bufio.NewScanner(strings.NewReader(text)); scanner.Scan(); {
		if line := strings.TrimSpace(scanner.Text()); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

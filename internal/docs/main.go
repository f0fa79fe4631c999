// Command docs keeps the tables of figures in docs/*.md up to date. The figures are files below docs/figures, a directory
// for each command that was run, with the commit and the machine in source.json. Run it in the root of the repository:
//
//	go run ./internal/docs                 # render the tables between the markers
//	go run ./internal/docs -check          # fail if rendering would change a page
//	go run ./internal/docs -measure paper  # run the command of some figures anew; FORESAIL_TRACES is the directory of traces
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "fail if a page is not up to date")
	measure := flag.String("measure", "", "names of figures to measure anew, separated by commas")
	flag.Parse()
	if err := run(".", *check, *measure); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run(root string, check bool, measure string) error {
	if measure != "" {
		for name := range strings.SplitSeq(measure, ",") {
			if err := measureSet(root, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		before, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		after, err := render(string(before), filepath.Join(root, "docs", "figures"))
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", page, err)
		case after == string(before):
		case check:
			return fmt.Errorf("%s: not as its figures are: run 'make docs'", page)
		default:
			if err := os.WriteFile(page, []byte(after), 0o644); err != nil { //nolint:gosec // a page of the repository
				return err
			}
		}
	}
	return nil
}

var block = regexp.MustCompile(`(?s)<!-- figures: ([\w-]+) -->\n.*?<!-- end -->`)

// render replaces what stands between the markers of a page.
func render(page, figures string) (string, error) {
	var failed error
	out := block.ReplaceAllStringFunc(page, func(old string) string {
		name := block.FindStringSubmatch(old)[1]
		table, ok := tables[name]
		if !ok {
			failed = fmt.Errorf("figures: %q: there is no such table", name)
			return old
		}
		text, err := table(figures)
		if err != nil {
			failed = fmt.Errorf("figures: %s: %w", name, err)
			return old
		}
		return fmt.Sprintf("<!-- figures: %s -->\n%s<!-- end -->", name, text)
	})
	return out, failed
}

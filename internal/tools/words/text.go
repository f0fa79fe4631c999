package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxPage = 100 // columns

// checkText looks at the words of a file line by line, without regard for what the file's language
// calls a comment.
func checkText(name string, content []byte, rules []rule) ([]finding, error) {
	return checkLines(name, content, rules, []string{"text", "code"})
}

// wide lines of a page cannot be wrapped: rows of tables, headings, images, and lines whose link
// alone is as long.
var wide = regexp.MustCompile(`^\s*(\||#|<|\[!|!\[)|^\S*$|\]\(\S{60,}\)`)

// checkPage looks at a page's words, and at the length of lines outside blocks of code and tables.
func checkPage(name string, content []byte, rules []rule) ([]finding, error) {
	findings, err := checkLines(name, content, rules, []string{"text"})
	block := false
	for i, line := range strings.Split(string(content), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			block = !block
		}
		if columns := utf8.RuneCountInString(line); columns > maxPage && !block && !wide.MatchString(line) {
			findings = append(findings, finding{file: name, line: i + 1, kind: "line", message: fmt.Sprintf("%d columns, more than %d", columns, maxPage)})
		}
	}
	return findings, err
}

func checkLines(name string, content []byte, rules []rule, places []string) ([]finding, error) {
	var findings []finding
	for i, line := range strings.Split(string(content), "\n") {
		if strings.Contains(line, "words:ok") {
			continue
		}
		messages, _ := match(rules, places, line)
		for _, message := range messages {
			findings = append(findings, finding{file: name, line: i + 1, kind: "word", message: message})
		}
	}
	return findings, nil
}

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// rule is a line of words.txt.
type rule struct {
	where   string // text, code, name or own
	pattern *regexp.Regexp
	instead string
}

func parseRules(text string) ([]rule, error) {
	var rules []rule
	for _, line := range lines(text) {
		columns := strings.Split(line, " | ")
		if len(columns) != 3 || !slices.Contains([]string{"text", "code", "name", "own"}, columns[0]) {
			return nil, fmt.Errorf("words.txt: %q: want text, code, name or own, a regular expression and what to write, divided by ' | '", line)
		}
		pattern, err := regexp.Compile("(?i)" + columns[1])
		if err != nil {
			return nil, fmt.Errorf("words.txt: %q: %w", line, err)
		}
		rules = append(rules, rule{where: columns[0], pattern: pattern, instead: columns[2]})
	}
	return rules, nil
}

// match returns what the rules of one of the places find in text, and the offsets at which it begins.
func match(rules []rule, places []string, text string) (messages []string, offsets []int) {
	for _, r := range rules {
		if !slices.Contains(places, r.where) {
			continue
		}
		for _, at := range r.pattern.FindAllStringIndex(text, -1) {
			messages = append(messages, fmt.Sprintf("%q: %s", strings.Join(strings.Fields(text[at[0]:at[1]]), " "),
				r.instead))
			offsets = append(offsets, at[0])
		}
	}
	return messages, offsets
}

// wordsOf divides an identifier into its words in small letters: HTTPServer2 becomes "http server2".
func wordsOf(identifier string) string {
	var b strings.Builder
	runes := []rune(identifier)
	for i, r := range runes {
		switch {
		case r == '_':
			b.WriteByte(' ')
			continue
		case i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) &&
			unicode.IsLower(runes[i+1])):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

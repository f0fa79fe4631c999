package promapi

import (
	"fmt"
	"strings"
)

// Shown is how many names, or warnings, a message lists.
const Shown = 3

// Some lists some of the names.
func Some(names []string) string {
	out := make([]string, 0, Shown+1)
	for _, name := range names[:min(Shown, len(names))] {
		out = append(out, fmt.Sprintf("%.100q", name))
	}
	if more := len(names) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// maxText is how much of a server's message is passed on.
const maxText = 300

// Short shortens a server's message and makes it one printable line.
func Short(text string) string {
	text = text[:min(len(text), 16*maxText)] // there may be megabytes of it
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	return text
}

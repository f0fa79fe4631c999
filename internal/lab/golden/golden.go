// Package golden compares what the lab writes with files in testdata.
package golden

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the files in testdata instead of comparing with them")

// Equal compares a text with a file in testdata.
func Equal(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// EqualAll compares texts with one file in testdata, each below its name. Styles and drawings of
// pages are left out, but for the texts in drawings.
func EqualAll(t *testing.T, name string, texts map[string]string) {
	t.Helper()
	var b strings.Builder
	for _, of := range slices.Sorted(maps.Keys(texts)) {
		b.WriteString("== " + of + "\n" + strings.TrimRight(undrawn(texts[of]), "\n") + "\n\n")
	}
	Equal(t, name, b.String())
}

var (
	styles   = regexp.MustCompile(`(?s)<style>.*?</style>`)
	drawings = regexp.MustCompile(`(?s)<svg.*?</svg>`)
	labels   = regexp.MustCompile(`(?s)<text[^>]*>([^<]*)</text>`)
)

func undrawn(page string) string {
	page = strings.ReplaceAll(styles.ReplaceAllString(page, "<style></style>"), "&#39;", "'")
	return drawings.ReplaceAllStringFunc(page, func(svg string) string {
		var texts []string
		for _, label := range labels.FindAllStringSubmatch(svg, -1) {
			texts = append(texts, strings.TrimSpace(label[1]))
		}
		return "<svg>" + strings.Join(texts, "|") + "</svg>"
	})
}

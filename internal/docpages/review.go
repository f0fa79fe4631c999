package docpages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reviewPage has a line for each metric, flag and alert, with the need that it serves.
const reviewPage = "docs/decisions/2026-11-27-metrics-and-flags.md"

var reviewedName = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\S.*\\|$")

// VerifyReviewed fails the test unless the review has a line for each name of a kind, such as "Metrics", and no
// other line. It logs how many names there are. The test runs in a folder below root.
func VerifyReviewed(t testing.TB, root, kind string, names []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, reviewPage))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## "+kind+"\n")
	require.True(t, found, kind)
	section, _, _ = strings.Cut(section, "\n## ")
	kept, _, _ := strings.Cut(section, "\n### ")
	var reviewed []string
	for _, row := range reviewedName.FindAllStringSubmatch(kept, -1) {
		reviewed = append(reviewed, row[1])
	}
	t.Logf("counted %d %s", len(names), strings.ToLower(kind))
	assert.ElementsMatch(t, names, reviewed, "%s has a line for each of the %s, and no other", reviewPage, strings.ToLower(kind))
}

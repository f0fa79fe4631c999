package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The packages that the Makefile tests without the race detector start no goroutines, and share
// nothing between those of others.
func TestPurePackagesHaveNoGoroutines(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^PURE = (.*)$`).FindSubmatch(makefile)
	require.NotNil(t, list)
	for folder := range strings.FieldsSeq(string(list[1])) {
		files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, folder)
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				_, starts := n.(*ast.GoStmt)
				assert.False(t, starts, "%s starts a goroutine", path)
				return true
			})
			for _, of := range file.Imports {
				assert.NotContains(t, []string{`"sync"`, `"sync/atomic"`, `"golang.org/x/sync/errgroup"`},
					of.Path.Value, path)
			}
		}
	}
}

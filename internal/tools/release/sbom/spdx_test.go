package sbom

import (
	"encoding/json"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var created = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// read checks what the specification of SPDX 2.3 says that a document must have.
func read(t *testing.T, info *debug.BuildInfo) spdx.Document {
	t.Helper()
	text, err := SPDX(info, "v1.2.3", created)
	require.NoError(t, err)
	var d spdx.Document
	require.NoError(t, json.Unmarshal(text, &d))
	assert.Equal(t, "SPDX-2.3", d.SPDXVersion)
	assert.Equal(t, "CC0-1.0", d.DataLicense)
	assert.EqualValues(t, "DOCUMENT", d.SPDXIdentifier)
	assert.Regexp(t, `^https://[^#]+$`, d.DocumentNamespace, "a URI without a fragment")
	assert.Equal(t, "2026-11-01T12:00:00Z", d.CreationInfo.Created)
	known := []common.ElementID{d.SPDXIdentifier}
	for _, p := range d.Packages {
		assert.NotContains(t, known, p.PackageSPDXIdentifier)
		known = append(known, p.PackageSPDXIdentifier)
		assert.NotEmpty(t, p.PackageName)
		assert.NotEmpty(t, p.PackageDownloadLocation)
		assert.False(t, p.FilesAnalyzed, "a package with files has a verification code")
		assert.Equal(t, "PACKAGE-MANAGER", p.PackageExternalReferences[0].Category)
		assert.Regexp(t, `^pkg:golang/[^ +@]+(@[^ +@]+)?$`, p.PackageExternalReferences[0].Locator)
	}
	for _, r := range d.Relationships {
		assert.Contains(t, known, r.RefA.ElementRefID)
		assert.Contains(t, known, r.RefB.ElementRefID)
	}
	assert.Len(t, d.Relationships, len(d.Packages), "each package is described, or depended on")
	return d
}

func TestEveryModuleIsNamed(t *testing.T) {
	d := read(t, &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Path: "github.com/foresail/foresail"},
		Deps: []*debug.Module{
			{Path: "github.com/docker/docker", Version: "v28.0.0+incompatible"},
			{Path: "example.com/replaced", Version: "v1.0.0",
				Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}},
		},
	})
	var locators []string
	for _, p := range d.Packages {
		locators = append(locators, p.PackageExternalReferences[0].Locator)
	}
	assert.Equal(t, []string{
		"pkg:golang/github.com/foresail/foresail@v1.2.3", "pkg:golang/stdlib@1.26.8",
		"pkg:golang/github.com/docker/docker@v28.0.0%2Bincompatible", "pkg:golang/example.com/fork@v1.0.1",
	}, locators)
	assert.Equal(t, "DESCRIBES", d.Relationships[0].Relationship)
}

// TestModulesOfTheCommandAreNamed has the modules that foresail is linked from, without linking it.
func TestModulesOfTheCommandAreNamed(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/foresail")
	list.Dir = "../../../.."
	output, err := list.Output()
	require.NoError(t, err)
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/foresail/foresail"}}
	seen := map[string]bool{}
	for line := range strings.Lines(string(output)) {
		path, version, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && !seen[path] {
			info.Deps = append(info.Deps, &debug.Module{Path: path, Version: version})
		}
		seen[path] = true
	}
	assert.Greater(t, len(read(t, info).Packages), 50)
}

func TestBinaryWithoutModulesIsRefused(t *testing.T) {
	_, err := SPDX(&debug.BuildInfo{}, "v1.2.3", created)
	assert.ErrorContains(t, err, "names no module")
}

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/internal/docpages"
)

// workflow has the fields that the tests read of a workflow of GitHub.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Uses           string            `json:"uses"`
		Permissions    map[string]string `json:"permissions"`
		TimeoutMinutes int               `json:"timeout-minutes"`
		Steps          []struct {
			Uses string         `json:"uses"`
			Run  string         `json:"run"`
			With map[string]any `json:"with"`
		} `json:"steps"`
	} `json:"jobs"`
}

var (
	uses   = regexp.MustCompile(`(?m)^ *(?:- )?uses: (.*)$`)
	pinned = regexp.MustCompile(`^([a-z-]+/[a-z-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+$`)
)

// TestWorkflows checks what actionlint does not: actions are pinned by commit, an action has one version,
// jobs end, and only jobs that publish may write.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	versions := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range uses.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(match[1], "./") {
				assert.FileExists(t, filepath.Join("..", match[1]))
				continue
			}
			action := pinned.FindStringSubmatch(match[1])
			if !assert.NotNil(t, action, "%s: %s: must be a commit, and its version in a comment", file, match[1]) {
				continue
			}
			if before, ok := versions[action[1]]; ok {
				assert.Equal(t, before, action[2], action[1])
			}
			versions[action[1]] = action[2]
		}
		var w workflow
		require.NoError(t, yaml.Unmarshal(text, &w))
		require.NotNil(t, w.Permissions, "%s: without them a workflow has those of the repository", file)
		for scope, access := range w.Permissions {
			assert.Equal(t, "read", access, "%s: %s: give it to a job", file, scope)
		}
		for name, job := range w.Jobs {
			if filepath.Base(file) != "release.yaml" || name != "publish" {
				assert.NotContains(t, job.Permissions, "id-token", "%s: %s", file, name)
				for scope, access := range job.Permissions {
					assert.NotEqual(t, "write", access, "%s: %s: %s", file, name, scope)
				}
			}
			if job.Uses != "" {
				continue
			}
			assert.NotZero(t, job.TimeoutMinutes, "%s: %s", file, name)
			for _, step := range job.Steps {
				if strings.HasPrefix(step.Uses, "actions/checkout@") {
					assert.Equal(t, false, step.With["persist-credentials"], "%s: %s", file, name)
				}
				assert.NotContains(t, step.Run, "${{",
					"%s: %s: an expression in a script is replaced before the shell reads it; use env", file, name)
				runsWhatThereIs(t, file, step.Run)
			}
		}
	}
	assert.NotEmpty(t, versions)
}

// runsWhatThereIs checks the targets of make and the modules of tools that a script names.
func runsWhatThereIs(t *testing.T, file, script string) {
	t.Helper()
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	for _, words := range docpages.CommandLines(script) {
		if words[0] == "make" {
			assert.Contains(t, string(makefile), "\n"+words[1]+": ", "%s: make %s", file, words[1])
		}
		if strings.HasPrefix(words[0], ".") {
			assert.FileExists(t, filepath.Join("..", words[0]), file)
		}
	}
}

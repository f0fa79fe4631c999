package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// foresail executes a command line and returns its exit code, stdout and stderr.
func foresail(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	return foresailAt(t, time.Now, stdin, args...)
}

// foresailAt is foresail with a clock for explanations.
func foresailAt(t *testing.T, now func() time.Time, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = execute(t.Context(), newRoot(now), args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

func file(t *testing.T, name, content string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestUnusableArgumentsEndWithTwo(t *testing.T) {
	spec := file(t, "spec.yaml", "threshold: 700m\nmaxReplicas: 9\n")
	for _, c := range []struct {
		args string
		want string
	}{
		{"rpelay", `foresail: unknown command "rpelay": must be one of `},
		{"help nothing", `unknown command "nothing": must be one of `},
		{"--fast", "foresail: unknown flag: --fast: must be one of --help"},
		{"replay", "--spec: missing: must be a file with a PredictedMetric or its spec"},
		{"replay --speck x", "unknown flag: --speck: must be one of --cooldowns, --help, --input, --learn, --output, --spec"},
		{"replay -x", "unknown shorthand flag: 'x' in -x: must be one of --cooldowns"},
		{"replay --spec", "flag needs an argument: --spec"},
		{"replay --spec " + spec + " events.jsonl", `unexpected argument "events.jsonl": foresail replay takes flags only`},
		{"replay --spec " + spec + " --output xml", `--output: "xml": must be json or table`},
		{"replay --spec " + spec + " --cooldowns=some", `--cooldowns: "some": must be true or false`},
		{"replay --spec " + spec + " --input /nonexistent", "--input: open /nonexistent: no such file or directory: must be a file of JSON Lines, or -"},
		{"replay --spec /nonexistent", "--spec: open /nonexistent: no such file or directory: must be a file"},
		{"replay --spec " + file(t, "spec.yaml", "threshold: [1]\nmaxReplicas: 9"), "spec.threshold: [1]: must be a quantity"},
		{"replay --spec " + file(t, "spec.yaml", "threshhold: 700m\nmaxReplicas: 9"), "spec.threshhold: no such field: must be one of"},
		{"replay --spec " + file(t, "spec.yaml", "threshold: 700m\nmaxReplicas: 9\nminReplicas: 10"), "spec.maxReplicas: 9: must be at least minReplicas (10)"},
		{"replay --spec " + file(t, "spec.yaml", "{"), "not a spec in YAML or JSON"},
		{"run --kube-api-qps many", `--kube-api-qps: "many": must be a number`},
		{"version 2", `unexpected argument "2": foresail version takes flags only`},
		{"version -o yaml", `--output: "yaml": must be text or json`},
	} {
		code, out, stderr := foresail(t, "", strings.Fields(c.args)...)
		assert.Equal(t, exitUsage, code, c.args)
		assert.Contains(t, stderr, c.want, c.args)
		assert.Contains(t, stderr, "--help' for what it accepts", c.args)
		assert.Empty(t, out, c.args)
	}
}

func TestHelpGoesToStdoutAndShowsExamples(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"help", "replay"}, {"replay", "--help"}, {"version", "-h"}} {
		code, out, stderr := foresail(t, "", args...)
		assert.Equal(t, exitDone, code, args)
		assert.Contains(t, out, "Examples:", args)
		assert.Empty(t, stderr, args)
	}
}

func TestEverySubcommandIsExplained(t *testing.T) {
	for _, c := range newRoot(time.Now).Commands() {
		if c.Name() == "help" {
			continue // cobra's own
		}
		assert.NotEmpty(t, c.Short, c.Name())
		assert.NotNil(t, c.Args, "%s must say what it does with arguments", c.Name())
		assert.NotEmpty(t, c.Example, c.Name())
	}
}

const oneSpec = `
apiVersion: foresail.dev/v1alpha1
kind: PredictedMetric
metadata: {name: checkout-elu, namespace: shop}
spec: {threshold: 700m, maxReplicas: 20, forecast: {method: Holt}}
`

const oneRecording = `{"run":3500}
{"instance":"a","start":-60000}
{"instance":"a","t":0,"v":1.5}
{"instance":"a","t":1000,"v":1.5}
{"instance":"a","t":2000,"v":1.5}
{"instance":"a","t":3000,"v":1.5}
{"run":-60000}
`

const oneResult = `{"now":-60000,"error":"no tick of the window has a value: at least two samples of one active instance are needed"}
{"now":3500,"tick":3000,"level":1.5,"trend":0,"horizonMs":45000,"forecast":1.5,"damped":1.5,"contributionWeight":1,"active":1,"loadNow":1.5,"loadPredicted":1.5,"direction":"Steady","desired":3,"action":"ScaleUp"}
`

func TestReplayReadsFromAFileOrStdin(t *testing.T) {
	spec := file(t, "spec.yaml", oneSpec)
	for _, input := range [][]string{{}, {"--input", "-"}, {"--input", file(t, "events.jsonl", oneRecording)}} {
		code, out, stderr := foresail(t, oneRecording, append([]string{"replay", "--spec", spec}, input...)...)
		assert.Equal(t, exitDone, code)
		assert.Equal(t, oneResult, out)
		assert.Empty(t, stderr)
	}
}

func TestReplayWritesATable(t *testing.T) {
	code, out, _ := foresail(t, oneRecording, "replay", "--spec", file(t, "spec.yaml", oneSpec), "--output", "table")
	assert.Equal(t, exitDone, code)
	lines := strings.Split(out, "\n")
	require.Len(t, lines, 4)
	assert.Equal(t, []string{"3500", "3000", "1.5000", "0.0000", "45s", "1.5000", "1.5000", "1.00", "1", "1", "1.5000", "1.5000", "Steady", "3", "ScaleUp", "AboveThreshold"}, strings.Fields(lines[2]))
	assert.Len(t, strings.Fields(lines[0]), 16)
}

func TestReplayAppliesCooldownsIfAsked(t *testing.T) {
	spec := file(t, "spec.yaml", oneSpec)
	twice := oneRecording + `{"run":3600}`
	_, out, _ := foresail(t, twice, "replay", "--spec", spec)
	assert.Equal(t, 2, strings.Count(out, `"desired":3,"action":"ScaleUp"`))
	_, out, _ = foresail(t, twice, "replay", "--spec", spec, "--cooldowns")
	assert.Equal(t, 1, strings.Count(out, `"desired":3,"action":"ScaleUp"`))
	assert.Equal(t, 1, strings.Count(out, `"desired":1,"action":"Hold"`))
}

func TestABadLineEndsWithOneAndKeepsTheResults(t *testing.T) {
	code, out, stderr := foresail(t, oneRecording+"\n{\"run\":soon}\n{\"run\":1}\n", "replay", "--spec", file(t, "spec.yaml", oneSpec))
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, oneResult, out)
	assert.Equal(t, "foresail replay: line 9: not a JSON object: invalid character 's' looking for beginning of value\n", stderr)
}

func TestReplayOfNothingSaysSo(t *testing.T) {
	code, out, stderr := foresail(t, "", "replay", "--spec", file(t, "spec.yaml", oneSpec))
	assert.Equal(t, exitDone, code)
	assert.Empty(t, out)
	assert.Contains(t, stderr, `nothing to evaluate: the input has no line like {"run":15000}`)
}

func TestAnInterruptedReplayEndsWithOne(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	silent, end := io.Pipe()
	defer func() { assert.NoError(t, end.Close()) }()
	var out, stderr bytes.Buffer
	code := execute(ctx, newRoot(time.Now), []string{"replay", "--spec", file(t, "spec.yaml", oneSpec)}, silent, &out, &stderr)
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, "foresail replay: interrupted\n", stderr.String())
}

func TestVersionTellsWhatTheBuildKnows(t *testing.T) {
	code, out, _ := foresail(t, "", "version", "--output", "json")
	assert.Equal(t, exitDone, code)
	var v version
	require.NoError(t, json.Unmarshal([]byte(out), &v))
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	assert.Equal(t, versionOf(info), v)
	assert.NotEmpty(t, v.Go)

	code, out, _ = foresail(t, "", "version")
	assert.Equal(t, exitDone, code)
	assert.Contains(t, out, v.Go)
}

func TestVersionOfABuild(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: "true"}, {Key: "vcs.time", Value: "2026-11-21T08:00:00Z"},
		{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"},
	}}
	v := versionOf(info)
	assert.Equal(t, version{Version: "v0.1.0", Commit: "0123abcd", CommitTime: "2026-11-21T08:00:00Z", Modified: true, Go: "go1.26.8", Platform: "linux/arm64"}, v)
	var out strings.Builder
	require.NoError(t, printVersion(&out, v, "text"))
	assert.Equal(t, "foresail v0.1.0\ncommit   0123abcd, with changes that are not committed\ngo       go1.26.8 linux/arm64\n", out.String())
}

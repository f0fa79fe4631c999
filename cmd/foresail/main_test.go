package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

// foresail executes a command line and returns its exit code, stdout and stderr.
func foresail(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	return foresailAt(t, time.Now, stdin, args...)
}

// foresailAt is foresail with a clock for explanations.
func foresailAt(t *testing.T, now func() time.Time, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, newRoot(now), stdin, args...)
}

func TestUnusableArgumentsEndWithTwo(t *testing.T) {
	spec := clitest.File(t, "spec.yaml", "threshold: 700m\nmaxReplicas: 9\n")
	for _, c := range []struct {
		args string
		want string
	}{
		{"rpelay", `foresail: unknown command "rpelay": must be one of `},
		{"help nothing", `unknown command "nothing": must be one of `},
		{"--fast", "foresail: unknown flag: --fast: must be one of --help"},
		{"replay", "--filename: missing: must be a file with a PredictedMetric or its spec"},
		{"replay --filenam x", "unknown flag: --filenam: must be one of --cooldowns, --filename, --help, --input, --learn, --output"},
		{"replay -x", "unknown shorthand flag: 'x' in -x: must be one of --cooldowns"},
		{"replay --filename", "flag needs an argument: --filename"},
		{"replay --filename " + spec + " events.jsonl",
			`unexpected argument "events.jsonl": foresail replay takes flags only`},
		{"replay --filename " + spec + " --output xml", `--output: "xml": must be json or table`},
		{"replay --filename " + spec + " --cooldowns=some", `--cooldowns: "some": must be true or false`},
		{"replay --filename " + spec + " --input /nonexistent",
			"--input: open /nonexistent: no such file or directory: must be a file of JSON Lines, or -"},
		{"replay --filename /nonexistent", "--filename: open /nonexistent: no such file or directory: must be a file"},
		{"replay --filename " + clitest.File(t, "spec.yaml", "threshold: [1]\nmaxReplicas: 9"),
			"spec.threshold: must be a quantity"},
		{"replay --filename " + clitest.File(t, "spec.yaml", "thresholds: 700m\nmaxReplicas: 9"),
			"spec.thresholds: no such field: must be one of"},
		{"replay --filename " + clitest.File(t, "spec.yaml", "threshold: 700m\nmaxReplicas: 9\nminReplicas: 10"),
			"spec.maxReplicas: 9: must be at least minReplicas"},
		{"replay --filename " + clitest.File(t, "spec.yaml", "{"), "not a spec in YAML or JSON"},
		{"run --kube-api-qps many", `--kube-api-qps: "many": must be a number`},
		{"version 2", `unexpected argument "2": foresail version takes flags only`},
		{"version -o yaml", `--output: "yaml": must be text or json`},
	} {
		code, out, stderr := foresail(t, "", strings.Fields(c.args)...)
		assert.Equal(t, cli.ExitUsage, code, c.args)
		assert.Contains(t, stderr, c.want, c.args)
		assert.Contains(t, stderr, "--help' for what it accepts", c.args)
		assert.Empty(t, out, c.args)
	}
}

func TestHelpGoesToStdoutAndShowsExamples(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"help", "replay"}, {"replay", "--help"},
		{"version", "-h"}} {
		code, out, stderr := foresail(t, "", args...)
		assert.Equal(t, cli.ExitDone, code, args)
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

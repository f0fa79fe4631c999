package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/docpages"
)

// parse returns why the command line would end with "unusable arguments". A mention in a sentence
// may lack arguments and the value of its last flag.
func parse(args []string, mention bool) error {
	root := newRoot(time.Now)
	args, _, err := cli.SplitType(root, args)
	if err != nil {
		return err
	}
	command, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if command == root && len(rest) > 0 {
		return cli.KnownCommand(root, rest)
	}
	command.InitDefaultHelpFlag()
	err = command.ParseFlags(rest)
	if mention && errors.As(err, new(*pflag.ValueRequiredError)) {
		return nil
	}
	if err != nil {
		return command.FlagErrorFunc()(command, err)
	}
	if help, _ := command.Flags().GetBool("help"); help || mention {
		return nil
	}
	return command.ValidateArgs(command.Flags().Args())
}

func TestCommandLinesOfPagesParse(t *testing.T) {
	checked := 0
	for _, page := range docpages.Pages(t, "../..") {
		for _, command := range page.Commands() {
			if args, ok := command.Foresail(); ok {
				checked++
				assert.NoError(t, parse(args, command.Mention), "%s: foresail %s", command.Where,
					strings.Join(args, " "))
			}
		}
	}
	assert.Greater(t, checked, 20)
}

func TestCommandLinesOfExamplesParse(t *testing.T) {
	for _, c := range append(cli.CommandsBelow(newRoot(time.Now)), newRoot(time.Now)) {
		for _, words := range docpages.CommandLines(c.Example) {
			if args, ok := (docpages.Command{Words: words}).Foresail(); ok {
				assert.NoError(t, parse(args, false), "%s: foresail %s", c.CommandPath(), strings.Join(args, " "))
			}
		}
	}
	assert.Error(t, parse([]string{"rnu"}, false))
	assert.Error(t, parse([]string{"run", "--enabel", "adapter"}, true))
	assert.Error(t, parse([]string{"version", "now"}, false))
}

const prefixes = "(?:apiservice|custom-metrics|forward|remote-write|prometheus|scrape|nodepool|notify|extender|keda|metrics)"

var flagOfRun = regexp.MustCompile("--(" + prefixes + "-[a-z-]*[a-z])")

func TestFlagsOfRunThatPagesNameExist(t *testing.T) {
	flags := runFlags(t)
	found := 0
	for _, page := range docpages.Pages(t, "../..") {
		if page.Path == "CHANGELOG.md" {
			continue // it names former flags
		}
		for _, match := range flagOfRun.FindAllStringSubmatch(page.Text, -1) {
			found++
			assert.NotNil(t, flags.Lookup(match[1]), "%s: --%s", page.Path, match[1])
		}
	}
	assert.NotZero(t, found)
}

func runFlags(t *testing.T) *pflag.FlagSet {
	t.Helper()
	run, _, err := newRoot(time.Now).Find([]string{"run"})
	require.NoError(t, err)
	return run.Flags()
}

var argument = regexp.MustCompile(`(?m)(?:^ *- |value: "?)--([a-z-]+)=`)

func TestArgumentsOfManifestsAreFlagsOfRun(t *testing.T) {
	flags := runFlags(t)
	found := 0
	for _, pattern := range []string{"base/*.yaml", "components/*/*.yaml", "overlays/*/*.yaml", "examples/*/*.yaml"} {
		files, err := filepath.Glob("../../manifests/" + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if strings.HasSuffix(file, "second-scheduler/deployment.yaml") {
				continue // the arguments of kube-scheduler
			}
			for _, match := range argument.FindAllStringSubmatch(string(text), -1) {
				found++
				assert.NotNil(t, flags.Lookup(match[1]), "%s: --%s", file, match[1])
			}
		}
	}
	assert.NotZero(t, found)
}

// TestImageIsBuiltLikeTheCommand compares the flags of the Dockerfile with those of make build.
func TestImageIsBuiltLikeTheCommand(t *testing.T) {
	of := regexp.QuoteMeta(reflect.TypeFor[cli.UsageError]().PkgPath())
	build := regexp.MustCompile(`CGO_ENABLED=0 go build .*"(-s -w -buildid= -X ` + of + `\.release=).*"`)
	for _, file := range []string{"Makefile", "Dockerfile"} {
		text, err := os.ReadFile("../../" + file)
		require.NoError(t, err)
		assert.Regexp(t, build, string(text), file)
		assert.Contains(t, string(text), "go build -trimpath", file)
	}
}

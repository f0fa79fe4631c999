package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/docpages"
)

// flagNames returns what the help of commands shows: a flag that several commands have counts once.
func flagNames(commands ...*cobra.Command) []string {
	names := map[string]bool{}
	for _, c := range commands {
		c.InitDefaultHelpFlag()
		for _, set := range []*pflag.FlagSet{c.Flags(), c.InheritedFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					names["--"+f.Name] = true
				}
			})
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func TestEveryFlagIsReviewed(t *testing.T) {
	root := newRoot(time.Now)
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("counted %d flags of foresail run", len(flagNames(run)))
	docpages.VerifyReviewed(t, "../..", "Flags", flagNames(append(cli.CommandsBelow(root), root)...))
}

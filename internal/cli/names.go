package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Kinds that commands take the name of.
const (
	AMetric = "a PredictedMetric"
	APool   = "a WorkerPool"
	APod    = "a Pod"
)

// typeNames are the words for each kind that kubectl accepts in TYPE/NAME.
var typeNames = map[string][]string{
	AMetric: {"predictedmetric", "predictedmetrics", "pm", "predictedmetric.foresail.dev",
		"predictedmetrics.foresail.dev"},
	APool: {"workerpool", "workerpools", "wp", "workerpool.foresail.dev", "workerpools.foresail.dev"},
	APod:  {"pod", "pods", "po"},
}

// OneName refuses any number of arguments but one. Of an argument TYPE/NAME it leaves the name in
// args, which cobra gives to the command afterwards.
func OneName(of string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
		case 0:
			return fmt.Errorf("the name of %s is missing: %s NAME", of, c.CommandPath())
		default:
			return fmt.Errorf("unexpected argument %q: %s takes one name", args[1], c.CommandPath())
		}
		name := args[0]
		if kind, rest, ok := strings.Cut(name, "/"); ok && slices.Contains(typeNames[of], kind) {
			name = rest
		}
		if name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%q: must be the name of %s, such as NAME or %s/NAME", args[0], of, typeNames[of][0])
		}
		args[0] = name
		return nil
	}
}

// SplitType turns the argument TYPE/NAME of a command that has a subcommand for each type into the
// two arguments TYPE NAME. It returns an error for an argument that is no subcommand, before cobra
// complains about the flags that follow.
func SplitType(root *cobra.Command, args []string) (split []string, command *cobra.Command, err error) {
	command, rest, unknown := root.Find(args)
	if unknown == nil && command != root && command.HasAvailableSubCommands() {
		split, err = splitFor(command, rest, args)
		return split, command, err
	}
	return args, command, nil // cobra reports an unknown command
}

// splitFor is SplitType for the arguments of a command that has subcommands. rest are those after its name.
func splitFor(command *cobra.Command, rest, args []string) ([]string, error) {
	for i, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok || !slices.Contains(rest, arg) || isValue(command, args[:i]) {
			continue
		}
		for _, sub := range command.Commands() {
			if kind == sub.Name() || sub.HasAlias(kind) || strings.HasSuffix(kind, ".foresail.dev") &&
				strings.HasPrefix(kind, sub.Name()) {
				// They go first, as cobra takes an argument after a flag of a subcommand for the
				// value of that flag.
				at := slices.Index(args, command.Name()) + 1
				return slices.Concat(args[:at], []string{sub.Name(), name}, args[at:i], args[i+1:]), nil
			}
		}
	}
	if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return args, KnownCommand(command, rest)
	}
	return args, nil
}

// isValue reports whether the argument that follows others is the value of the flag that is the last of them.
func isValue(command *cobra.Command, before []string) bool {
	if len(before) == 0 {
		return false
	}
	name, long := strings.CutPrefix(before[len(before)-1], "--")
	short, isShort := strings.CutPrefix(before[len(before)-1], "-")
	if !isShort {
		return false
	}
	for _, sub := range command.Commands() {
		flag := sub.Flags().Lookup(name)
		if !long && len(short) == 1 {
			flag = sub.Flags().ShorthandLookup(short)
		}
		if flag != nil && flag.NoOptDefVal == "" {
			return true
		}
	}
	return false
}

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// flagError says of a flag that cannot be parsed what would be accepted instead.
func flagError(c *cobra.Command, err error) error {
	var badValue *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &badValue):
		flag := badValue.GetFlag()
		return BadFlag(flag.Name, fmt.Sprintf("%q", badValue.GetValue()), accepts(flag))
	case errors.As(err, &unknown):
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return fmt.Errorf("%w: must be one of %s", err, strings.Join(names, ", "))
	default:
		return err
	}
}

// accepts describes the values of a flag.
func accepts(f *pflag.Flag) string {
	if c, ok := f.Value.(*choice); ok {
		return c.accepts()
	}
	switch t := f.Value.Type(); t {
	case "bool":
		return "true or false"
	case "duration":
		return "a duration, such as 90s"
	case "int", "int32", "int64":
		return "a whole number"
	case "uint", "uint16", "uint32", "uint64":
		return "a whole number, 0 or more"
	case "float32", "float64":
		return "a number"
	default:
		return "a value of type " + t
	}
}

// NoArguments refuses arguments that are not flags.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: %s takes flags only", args[0], c.CommandPath())
	}
	return nil
}

// KnownCommand refuses arguments of the root command that name none of its subcommands.
func KnownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q: must be one of %s", args[0], strings.Join(names, ", "))
}

// helpArguments refuses to help with a command that does not exist, which cobra would do with exit code 0.
func helpArguments(c *cobra.Command, args []string) error {
	target, rest, err := c.Root().Find(args)
	if err == nil && target == c.Root() {
		err = KnownCommand(target, rest)
	}
	return err
}

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value   string
	choices []string
}

// AddOutputFlag adds --output, with the first of the formats as its default, and returns its value.
func AddOutputFlag(c *cobra.Command, formats ...string) fmt.Stringer {
	output := &choice{value: formats[0], choices: formats}
	c.Flags().VarP(output, "output", "o", "how to write the result: "+output.accepts())
	return output
}

func (c *choice) accepts() string { return strings.Join(c.choices, " or ") }

// String, Type and Set make a choice a pflag.Value.
func (c *choice) String() string { return c.value }

func (c *choice) Type() string { return strings.Join(c.choices, "|") }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.choices, s) {
		return fmt.Errorf("must be %s", c.accepts())
	}
	c.value = s
	return nil
}

// PrintGroupedUsage prints the usage of a command with its flags in groups, indented for a terminal
// of 100 columns.
func PrintGroupedUsage(c *cobra.Command, groups cliflag.NamedFlagSets) error {
	w := c.OutOrStderr()
	if _, err := fmt.Fprintf(w, "Usage:\n  %s\n\nExamples:\n%s\n", c.UseLine(), c.Example); err != nil {
		return err
	}
	cliflag.PrintSections(w, groups, 100)
	return nil
}

// PrintJSON writes a value for programs, indented.
func PrintJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

package cli

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// The names by which kubectl finds the command as a plugin, and what completes its arguments. Both
// are links to the same binary.
const (
	pluginName           = "kubectl-foresail"
	pluginCompletionName = "kubectl_complete-foresail"
)

// InvokedAs fits a command line to the name that it was run by, argv[0], and returns the arguments.
func InvokedAs(root *cobra.Command, argv []string) []string {
	switch strings.TrimSuffix(filepath.Base(argv[0]), ".exe") {
	case pluginName:
		asPlugin(root)
	case pluginCompletionName:
		asPlugin(root)
		return append([]string{cobra.ShellCompRequestCmd}, argv[1:]...)
	}
	return argv[1:]
}

// commandInExample is where an example runs the command.
var commandInExample = regexp.MustCompile(`(?m)(^ *|\| |\()foresail `)

// asPlugin has help and errors say what people type.
func asPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl foresail"}
	for _, c := range append(CommandsBelow(root), root) {
		c.Example = commandInExample.ReplaceAllString(c.Example, "${1}kubectl foresail ")
	}
}

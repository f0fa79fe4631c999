package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script that has a shell complete commands, flags and names",
		Long: `Completion prints a script for a shell. Names of PredictedMetrics and WorkerPools are completed
from the cluster.

kubectl completes the arguments of the plugin, kubectl foresail, by a program of the name
kubectl_complete-foresail on the PATH: link that name to this binary as well.`,
		Example: `  # In this shell only
  source <(foresail completion bash)

  # In all that begin from now on
  foresail completion bash | sudo tee /etc/bash_completion.d/foresail
  foresail completion zsh | tee "${fpath[1]}/_foresail"
  foresail completion fish | tee ~/.config/fish/completions/foresail.fish
  foresail completion powershell | Out-File -Append $PROFILE`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return fmt.Errorf("%q: must be one of %s", args, strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			root, w := c.Root(), c.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			default:
				return root.GenPowerShellCompletionWithDesc(w)
			}
		},

		DisableFlagsInUseLine: true,
	}
}

// completeChoices completes the flags that take one of a few words.
func completeChoices(root *cobra.Command) {
	for _, c := range CommandsBelow(root) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if words, ok := f.Value.(*choice); ok {
				// It fails for flags that do not exist or have one already.
				_ = c.RegisterFlagCompletionFunc(f.Name,
					cobra.FixedCompletions(words.choices, cobra.ShellCompDirectiveNoFileComp))
			}
		})
	}
}

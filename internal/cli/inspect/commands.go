// Package inspect has the commands that show or change what Foresail does in a cluster.
package inspect

import (
	"time"

	"github.com/spf13/cobra"
)

// Commands returns the commands of this package; explanations read the time from now.
func Commands(now func() time.Time) []*cobra.Command {
	return []*cobra.Command{
		newExplainCommand(now), newDashboardCommand(now), newHPACommand(), newCostCommand(), newRolloutCommand(now),
	}
}

package inspect

import (
	"time"

	"github.com/spf13/cobra"
)

// Commands returns the commands that read or change a cluster; explanations read the time from now.
func Commands(now func() time.Time) []*cobra.Command {
	return []*cobra.Command{
		newExplainCommand(now), newDashboardCommand(now), newHPACommand(), newCostCommand(), newRolloutCommand(now),
	}
}

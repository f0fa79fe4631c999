package main

import (
	"time"

	"github.com/spf13/cobra"
)

// inspectCommands returns the commands that read or change a cluster; explanations read the time from now.
func inspectCommands(now func() time.Time) []*cobra.Command {
	return []*cobra.Command{
		newExplainCommand(now), newDashboardCommand(now), newHPACommand(), newCostCommand(), newRolloutCommand(now),
	}
}

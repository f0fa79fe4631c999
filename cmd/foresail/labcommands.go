package main

import (
	"time"

	"github.com/spf13/cobra"
)

// labCommands returns the commands that play or replay loads. Those that look back do so from now.
func labCommands(now func() time.Time) []*cobra.Command {
	return []*cobra.Command{
		newReportCommand(now), newReplayCommand(), newBacktestCommand(), newThresholdCommand(now), newSimulateCommand(),
	}
}

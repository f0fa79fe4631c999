package lab

import (
	"time"

	"github.com/spf13/cobra"
)

// Commands returns the commands that play or replay loads. Those that look back do so from now.
func Commands(now func() time.Time) []*cobra.Command {
	return []*cobra.Command{
		newReportCommand(now), newReplayCommand(), newBacktestCommand(), newThresholdCommand(now), newSimulateCommand(),
	}
}

// Package lab has the commands that play loads, or look for the settings that fit them.
package lab

import (
	"time"

	"github.com/spf13/cobra"
)

// Commands returns the commands of this package; those that query the past do so up to now.
func Commands(now func() time.Time) []*cobra.Command {
	return []*cobra.Command{
		newReportCommand(now), newReplayCommand(), newBacktestCommand(), newThresholdCommand(now), newSimulateCommand(),
	}
}

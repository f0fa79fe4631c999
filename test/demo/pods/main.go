// Command demo shows what Foresail is for: on a real control plane of this machine, it plays one
// ramp of load to two applications at once, of which one has an HPA that reads a forecast and the
// other one that reads the present load.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/terminal"
)

// The ramp that is played unless another is asked for: from a few requests to what nine pods can
// take at the threshold.
const defaultProfile = "0s:10,10s:10,130s:600,170s:600"

// config is what the flags say.
type config struct {
	profile loadgen.Profile
	seed    uint64
	keep    bool
	plain   bool
	chart   string // file; "" for none
}

func main() {
	os.Exit(terminal.Execute(newCommand(func(ctx context.Context, c config) error {
		return run(ctx, c, os.Stdout, os.Stderr)
	}), os.Args[1:], os.Stderr))
}

func newCommand(run func(context.Context, config) error) *cobra.Command {
	var (
		c       config
		profile string
		down    bool
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play one ramp to two applications: one scaled on a forecast, one on the present load",
		Long: `demo runs a real Kubernetes control plane on this machine, without containers, and Foresail on it. It plays the same
ramp of HTTP requests to two applications at once. Their HPAs are the same but for what they read: one the load that is
forecast, the other the present load. A pod takes 20 s to become ready. The demo ends by itself after three and a half
minutes, Ctrl-C ends it at any time.

Exit codes: 0 done, 1 failed, 2 unusable arguments, 130 ended by Ctrl-C.`,
		Example: `  go run ./test/demo/pods --keep
  go run ./test/demo/pods --profile 0s:10,30s:10,40s:500,120s:500`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), c)
		},
		PreRunE: func(*cobra.Command, []string) (err error) {
			if c.profile, err = loadgen.ParseProfile(profile); err != nil {
				return fmt.Errorf("--profile: %w", err)
			}
			if down {
				c.profile = withWayDown(c.profile)
			}
			if err := c.profile.Validate(); err != nil {
				return fmt.Errorf("--profile with --down: %w", err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&profile, "profile", defaultProfile,
		"load to play: time:requests per second, straight lines in between")
	flags.BoolVar(&down, "down", false, "let the load fall at the end, and watch both scale down for three minutes")
	flags.BoolVar(&c.keep, "keep", false, "leave the control plane up after the ramp, until Ctrl-C")
	flags.BoolVar(&c.plain, "plain", false, "print lines instead of the live view, as when the output is no terminal")
	flags.StringVar(&c.chart, "out", "out/demo.svg", "file for the chart of the run; empty for none")
	flags.Uint64Var(&c.seed, "seed", 1, "seed of the service times")
	return cmd
}

// withWayDown lets the load fall back to where it began within 20 s and stay there for the rest of
// three minutes.
func withWayDown(p loadgen.Profile) loadgen.Profile {
	end, low := p.Duration(), p[0].RPS
	return append(p, loadgen.Point{At: end + 20*time.Second, RPS: low},
		loadgen.Point{At: end + 3*time.Minute, RPS: low})
}

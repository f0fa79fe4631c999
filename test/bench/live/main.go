package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// What libraries log is of use when something fails, and then in the logs of the programs.
	klog.SetLogger(logr.Discard())
	if err := command(os.Stdout, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "benchlive:", err)
		stop()
		os.Exit(1)
	}
}

// shorter is how much shorter the profiles of a short run are. They stay whole seconds.
const shorter = 5

func command(out, progress io.Writer) *cobra.Command {
	c := settings{lead: lead, startup: 19 * time.Second, progress: progress}
	var (
		profileNames, scalerNames []string
		short                     bool
		seeds                     int
	)
	cmd := &cobra.Command{
		Use:   "benchlive",
		Short: "Play loads in real time to one scaler after another",
		Long: `benchlive plays loads in real time, by k6 through a proxy with slow start, to an application on a real control plane of
this machine, once for each scaler: hpa-cpu is an HPA on the CPU of metrics-server, keda is KEDA's own operator, current is
an HPA on what KEDA reads, served by Foresail without a forecast, and foresail-* are HPAs on Foresail's forecasts. Pods are real
HTTP servers, whose work takes time but no CPU. The same is simulated, and both are printed and written to files.

The load hourly comes each hour, and did so for a week before: foresail-* begin with what they would have learned of it.

It takes 7 minutes for each scaler with a ramp, 5 with a spike, 8 with what comes each hour, and should have the machine to itself. The first time it
also builds k6 and KEDA, which takes some 15 minutes.`,
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ps, err := profilesNamed(profileNames)
			if err != nil {
				return fmt.Errorf("--profiles: %w", err)
			}
			scs, err := pick("scaler", scalerNames, scalers(), func(s scaler) string { return s.name })
			if err != nil {
				return fmt.Errorf("--scalers: %w", err)
			}
			if !(c.scale >= 1 && c.scale <= 100) {
				return fmt.Errorf("--scale: %v: must be from 1 to 100", c.scale)
			}
			for i := range ps {
				ps[i] = ps[i].divided(c.scale)
				if short {
					ps[i] = ps[i].shortened(shorter)
				}
			}
			if short {
				c.lead = lead / shorter
				c.startup /= shorter
			}
			return bench(cmd.Context(), c, ps, scs, seeds, out)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&profileNames, "profiles", []string{"ramp", "spike"}, "loads to play")
	flags.StringSliceVar(&scalerNames, "scalers", defaultScalers(), "scalers to compare")
	flags.Float64Var(&c.scale, "scale", 1,
		"divides the rate of requests and multiplies the work of each, for a small machine")
	flags.BoolVar(&short, "short-profile", false,
		"play a fifth of the time, to see that everything works: the figures mean nothing")
	flags.Uint64Var(&c.seed, "seed", 1, "seed of the service times")
	flags.IntVar(&seeds, "seeds", 20, "seeds of the simulation; 0 for none")
	flags.StringVar(&c.out, "out", "out/bench-live", "folder for the figures")
	return cmd
}

// bench plays every profile to every scaler, and prints and writes what it came to. What was played
// before an error is printed and written too.
func bench(ctx context.Context, c settings, ps []profile, scs []scaler, seeds int, out io.Writer) error {
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return err
	}
	withKEDA := slices.ContainsFunc(scs, func(s scaler) bool { return s.keda })
	b, err := buildBinaries(ctx, withKEDA, c.progress)
	if err != nil {
		return err
	}
	rows, err := playAll(ctx, b, c, ps, scs)
	if err == nil && seeds > 0 {
		var simulated []row
		if simulated, err = simulate(ctx, c, ps, scs, seeds); err == nil {
			rows = append(rows, simulated...)
		}
	}
	fmt.Fprint(out, table(rows))
	return errors.Join(err, writeSummary(filepath.Join(c.out, "summary.csv"), rows))
}

func playAll(ctx context.Context, b binaries, c settings, ps []profile, scs []scaler) ([]row, error) {
	var rows []row
	for _, p := range ps {
		for _, sc := range scs {
			r, err := play(ctx, b, c, p, sc)
			if err != nil {
				if ctx.Err() != nil {
					return rows, context.Cause(ctx)
				}
				return rows, err
			}
			rows = append(rows, r.row())
			fmt.Fprintf(c.progress, "%s\n", strings.TrimSpace(r.row().line()))
			if r.late > c.serviceTime() {
				fmt.Fprintf(c.progress, "%s: %s: the machine was busy with other things, and late by %s: these figures mean little\n",
					p.name, sc.name, r.late.Round(time.Millisecond))
			}
			if err := writeFile(filepath.Join(c.out, p.name+"-"+sc.name+".csv"), func(w io.Writer) error {
				return writeMoments(w, p, r.moments)
			}); err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

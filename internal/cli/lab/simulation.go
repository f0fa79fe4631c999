package lab

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/lab/report"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/world/workload"
)

const (
	maxSeeds          = 1000
	maxSimulatedPods  = 1000
	minStartup        = time.Second
	maxStartup        = time.Hour
	defaultStartup    = 19 * time.Second
	defaultSeeds      = 20
	defaultMax        = 20
	unplayableScale   = 1e9
	scalerDescription = `  hpa-cpu            an HPA on CPU, with the HPA's default behaviour
  keda               an HPA on the measured utilisation of event loops, likewise
  paper              the scaler of the paper, which sets the replicas itself every 5 s
  foresail-total     Foresail, through an HPA that reads predicted_load_total
  foresail-load      ... that reads predicted_load
  foresail-replicas  ... that reads predicted_replicas
  foresail-direct    Foresail's own decision, without an HPA
  clairvoyant        a bound: knows the future load, and starts each pod just in time
  instant            a bound: knows the present load exactly, but not the future
  instant/hpa-defaults
                     a bound: an HPA with the HPA's default behaviour that reads that load

The HPAs of foresail-* have the behaviour that docs/hpa.md recommends. Two suffixes separate the
effect of the forecast from that of the behaviour: keda/same-behavior and hpa-cpu/same-behavior have
the behaviour of foresail-*; foresail-total/hpa-defaults (-load, -replicas) have the HPA's default.`
)

// playOptions are the flags that simulate and backtest share.
type playOptions struct {
	known            []string // names of scalers
	trace, spec, out string
	scale, threshold float64
	seeds, min, max  int
	startup          time.Duration
	scalers          []string
	all              bool
	scalersGiven     bool
	startupGiven     bool
	seedsGiven       bool
}

func (o *playOptions) addFlags(c *cobra.Command, minimum int, outContents string) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.trace, "trace", "", "`file` with a load to play: "+workload.TraceHelp)
	f.Float64Var(&o.scale, "scale", 1, "`factor` to multiply each rate of the trace by")
	f.StringSliceVar(&o.scalers, "scalers", scaler.DefaultNames(), "`names` of the scalers to compare")
	f.BoolVar(&o.all, "all", false, "compare all scalers, and print all figures")
	f.IntVar(&o.seeds, "seeds", defaultSeeds, "how many seeds each scaler meets; figures are means over them")
	f.Float64Var(&o.threshold, "threshold", 0.7, "utilisation of a pod that scalers aim at, above 0 and below 1")
	f.IntVar(&o.min, "min", minimum, "minimum number of pods")
	f.IntVar(&o.max, "max", defaultMax, "maximum number of pods")
	f.DurationVar(&o.startup, "startup", defaultStartup, "how long a pod takes to become ready, on average")
	f.StringVarP(&o.spec, "filename", "f", "",
		"`file` with a PredictedMetric or its spec, for the settings of foresail-*; empty takes the defaults")
	f.StringVar(&o.out, "out", "", "`directory` for "+outContents+"; empty writes no files")
}

// complete reads which flags were given.
func (o *playOptions) complete(c *cobra.Command) {
	f := c.Flags()
	o.scalersGiven, o.startupGiven, o.seedsGiven = f.Changed("scalers"), f.Changed("startup"), f.Changed("seeds")
}

// played returns the scalers to compare.
func (o *playOptions) played() []string {
	if o.all {
		return o.known
	}
	return o.scalers
}

// validate returns everything that is wrong with the shared flags.
func (o *playOptions) validate() error {
	var errs []error
	require := func(ok bool, flag string, value any, accept string) {
		if !ok {
			errs = append(errs, cli.BadFlag(flag, value, accept))
		}
	}
	require(o.scale > 0 && o.scale <= unplayableScale, "scale", o.scale,
		fmt.Sprintf("above 0 and at most %g", float64(unplayableScale)))
	require(o.seeds >= 1 && o.seeds <= maxSeeds, "seeds", o.seeds, fmt.Sprintf("from 1 to %d", maxSeeds))
	require(o.threshold > 0 && o.threshold < 1, "threshold", o.threshold, "above 0 and below 1")
	require(o.min >= 1 && o.min <= maxSimulatedPods, "min", o.min, fmt.Sprintf("from 1 to %d", maxSimulatedPods))
	require(o.max >= o.min && o.max <= maxSimulatedPods, "max", o.max,
		fmt.Sprintf("from --min (%d) to %d", o.min, maxSimulatedPods))
	require(o.startup >= minStartup && o.startup <= maxStartup, "startup", o.startup,
		fmt.Sprintf("from %s to %s", minStartup, maxStartup))
	accepted := "one or more of " + strings.Join(o.known, ", ")
	require(len(o.scalers) > 0, "scalers", "none", accepted)
	require(!o.all || !o.scalersGiven, "all", o.all, "left out where --scalers is given")
	for i, name := range o.scalers {
		require(slices.Contains(o.known, name), "scalers", fmt.Sprintf("%q", name), accepted)
		require(!slices.Contains(o.scalers[:i], name), "scalers", fmt.Sprintf("%q twice", name), "different names")
	}
	return errors.Join(errs...)
}

// readTrace reads the file of --trace and scales it.
func (o *playOptions) readTrace() (*workload.Trace, error) {
	file, err := os.Open(o.trace)
	if err != nil {
		return nil, cli.BadFlag("trace", err, "a file: "+workload.TraceHelp)
	}
	defer func() { _ = file.Close() }() // it was only read
	trace, err := workload.ReadTrace(workload.TraceName(o.trace), file)
	if err != nil {
		return nil, cli.Unusable(fmt.Errorf("--trace %s: %w", o.trace, err))
	}
	return trace.Scaled(o.scale), nil
}

// firstSeed makes the same command line give the same figures.
const firstSeed = 1

// seedList returns the seeds to play.
func (o *playOptions) seedList(n int) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = firstSeed + uint64(i)
	}
	return seeds
}

// makeOut makes the directory of --out and checks that files can be written to it, before anything
// takes time; "" is none.
func makeOut(dir string) error {
	if dir == "" {
		return nil
	}
	const accept = "a directory that can be written to"
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return cli.BadFlag("out", err, accept)
	}
	probe, err := os.CreateTemp(dir, ".foresail-*")
	if err != nil {
		return cli.BadFlag("out", err, accept)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// writeReport writes a report for a terminal, and its files to the directory of --out; "" is none.
func writeReport(w io.Writer, r *report.Report, dir string) error {
	if err := r.WriteText(w); err != nil || dir == "" {
		return err
	}
	if err := r.Save(dir); err != nil || r.Name == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "\nThe report is in %s.\n", filepath.Join(dir, report.PageFile))
	return err
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/lab/play/compare"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/world/queue"
	"github.com/foresail/foresail/internal/lab/world/workload"
	"github.com/foresail/foresail/pipeline"
)

const (
	traceProfile        = "file"
	maxSimulated        = 6 * time.Hour
	defaultSimulatedMin = 4
)

const simulateHelp = `Simulate compares scalers under a load, request by request and in virtual time: what users would
experience with each, and how many pods it would take. It needs no cluster.

By default it compares keda (what clusters use today), foresail-total (what docs/hpa.md recommends) and
clairvoyant (the best possible), and ends with one sentence. --all compares all scalers and prints all
figures.

Scalers (--scalers):

` + scalerDescription + `

Loads (--profile): ramp and spike are those of the paper; sine, sawtooth, noise, bursts, drift and
falling test other things. --trace plays a load of your own instead, of at most six hours:

  unix_seconds,requests_per_second
  1700000000,412
  1700000060,430

A pod is an event loop that does the 8 ms of work of a request in pieces. Above 390 requests in flight it
fails some, and clients give up after ten seconds. A new pod takes --startup to become ready, up to ten
seconds more until the proxy knows it, and half a minute to its full share of requests. The model was
fitted to what one paper measured of hpa-cpu and keda. Other models fit as well: look at differences
rather than absolute figures, and check with --variants that they survive other models of a pod.

Every scaler meets the same arrivals and the same pods for each seed, so differences are far more
certain than figures. Tables have means over the seeds, with half the 95% interval. Success is the share
of requests sent; dropped requests were never sent, because 2,000 were waiting already. Under and over
are the seconds with fewer and more pods than the threshold needs. Time above the threshold counts the
seconds in which ready pods had more load than the threshold, divided by 60; saturated counts those in
which they had more than they can do.

foresail-* use the default settings, or those of --filename except for threshold, minReplicas and
maxReplicas. startupTime is that of --filename; without --filename it is --startup, if given.

--ablations changes one setting of foresail-total at a time: the age of readings (freshness), the
reaction delay (delay), the HPA's behavior, the metric that is read, and the forecast's method. Unless
--profile or --trace chooses the loads, it plays further loads where they matter.

--out gets summary.csv with the columns

  profile,scaler,seeds,success,mean_ms,p50_ms,p90_ms,p99_ms,errors,pod_seconds,under_s,over_s,actions,reversals

(success is a fraction), intervals.csv (every figure, half its interval, and its difference from keda),
seeds.csv (every run), variants.csv and ablations.csv if they were played, and charts as SVG and PNG. The
same command line writes the same bytes. An interrupted run prints what was finished.`

const simulateExamples = `  # Would Foresail help under the paper's two loads?
  foresail simulate

  # All scalers, with charts
  foresail simulate --all --out comparison

  # Your own hour, with your own settings, for pods that take a minute to start
  foresail simulate --trace checkout.csv --filename checkout-elu.yaml --startup 1m --max 40

  # Does the result depend on the model of a pod?
  foresail simulate --variants --out variants

  # What is each of the recommended settings worth?
  foresail simulate --scalers keda --ablations --out ablations`

func newSimulateCommand() *cobra.Command {
	o := &simulateOptions{playOptions: playOptions{known: slices.Concat(scaler.Names(), scaler.Variations())}}
	c := &cobra.Command{
		Use:     "simulate [--profile NAME,...] [--trace FILE] [--scalers NAME,...] [--out DIR]",
		Short:   "Compare scalers request by request, in virtual time",
		Long:    simulateHelp,
		Example: simulateExamples,
		Args:    cli.NoArguments,

		DisableFlagsInUseLine: true,
	}
	o.addFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.complete(c)
		o.profilesGiven = c.Flags().Changed("profile")
		config, err := o.config()
		if err != nil {
			return err
		}
		if err := makeOut(o.out); err != nil {
			return err
		}
		return o.run(c, config)
	}
	return c
}

// simulateOptions are the flags of simulate.
type simulateOptions struct {
	playOptions
	profiles            []string
	profilesGiven       bool
	variants, ablations bool
}

func (o *simulateOptions) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&o.profiles, "profile", []string{"ramp", "spike"}, "`names` of loads to play: "+acceptedProfiles())
	o.playOptions.addFlags(c, defaultSimulatedMin, "summary.csv, further figures and charts")
	f.BoolVar(&o.variants, "variants", false,
		"also play other models of pods, and report whether the order of scalers changes; takes six times as long")
	f.BoolVar(&o.ablations, "ablations", false,
		"also change one setting after the other, and report what each is worth; takes some minutes")
}

func acceptedProfiles() string {
	return strings.Join(workload.Names(), ", ") + ", or " + traceProfile + ", which is that of --trace"
}

// loadsGiven reports whether --profile or --trace chose the loads.
func (o *simulateOptions) loadsGiven() bool { return o.profilesGiven || o.trace != "" }

// config makes a comparison of the flags.
func (o *simulateOptions) config() (compare.Config, error) {
	if err := o.validate(); err != nil {
		return compare.Config{}, err
	}
	profiles, err := o.loads()
	if err != nil {
		return compare.Config{}, err
	}
	settings, err := o.settings()
	if err != nil {
		return compare.Config{}, err
	}
	model := queue.Defaults()
	model.Startup = float64(o.startup.Milliseconds())
	model.StartupSpread = min(model.StartupSpread, model.Startup)
	c := compare.Config{
		Profiles: profiles, Scalers: o.played(), Seeds: o.seedList(o.seeds), Model: model,
		Setup: scaler.Setup{
			Threshold: o.threshold, Min: o.min, Max: o.max, Startup: untilFullShare(model),
			Params: settings, Paper: scaler.PaperParams(),
		},
	}
	if err := c.Check(); err != nil {
		return compare.Config{}, cli.Unusable(err)
	}
	return c, nil
}

// untilFullShare is how long before a pod is needed clairvoyant orders it, on average: until it is
// ready, the proxy knows it, and half of its slow start is over.
func untilFullShare(m queue.Model) time.Duration {
	ms := m.Startup + (m.Notice+m.Refresh)/2 + m.SlowStart/2
	return time.Duration(ms) * time.Millisecond
}

func (o *simulateOptions) validate() error {
	err := o.playOptions.validate()
	if len(o.profiles) == 0 {
		err = errors.Join(err, cli.BadFlag("profile", "none", acceptedProfiles()))
	}
	return err
}

// loads are the profiles to play. A trace replaces the default profiles.
func (o *simulateOptions) loads() ([]compare.Profile, error) {
	names := o.profiles
	if o.trace != "" && !o.profilesGiven {
		names = []string{traceProfile}
	}
	if o.trace != "" && !slices.Contains(names, traceProfile) {
		names = append(slices.Clone(names), traceProfile)
	}
	var profiles []compare.Profile
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
			return nil, cli.BadFlag("profile", fmt.Sprintf("%q twice", name), "different names")
		case name == traceProfile:
			trace, err := o.readTrace()
			if err != nil {
				return nil, err
			}
			profiles = append(profiles, compare.TraceProfile(trace))
		case slices.Contains(workload.Names(), name):
			profiles = append(profiles, compare.NamedProfile(name))
		default:
			return nil, cli.BadFlag("profile", fmt.Sprintf("%q", name), "one or more of "+acceptedProfiles())
		}
	}
	return profiles, nil
}

func (o *simulateOptions) readTrace() (*workload.Trace, error) {
	if o.trace == "" {
		return nil, cli.BadFlag("trace", "missing", "given with --profile "+traceProfile)
	}
	trace, err := o.playOptions.readTrace()
	if err != nil {
		return nil, err
	}
	if slices.Contains(workload.Names(), trace.Name) {
		trace.Name += ".csv"
	}
	if trace.Length() > maxSimulated {
		return nil, cli.BadFlag("trace", fmt.Sprintf("%s is %s long", o.trace, trace.Length()),
			fmt.Sprintf("at most %s long: every request is simulated", maxSimulated))
	}
	return trace, nil
}

// settings are those of Foresail's forecast.
func (o *simulateOptions) settings() (pipeline.Params, error) {
	if o.spec != "" {
		return readParams(o.spec)
	}
	p := scaler.RecommendedParams()
	if o.startupGiven {
		p.StartupTime = o.startup
	}
	return p, nil
}

// run plays the comparison and reports its result; of an interrupted one, what was finished.
func (o *simulateOptions) run(c *cobra.Command, config compare.Config) error {
	ctx, total := c.Context(), config.Runs()
	if o.variants {
		total += compare.VariantRuns(config)
	}
	if o.ablations {
		total += compare.AblationRuns(config, !o.loadsGiven())
	}
	progress := newRunProgress(c.ErrOrStderr(), total)
	step := func(compare.Run) { progress.step() }
	var played compare.Played
	var err error
	played.Result, err = compare.Play(ctx, config, step)
	if err == nil && o.variants {
		played.Variants, err = compare.PlayVariants(ctx, config, played.Result, step)
	}
	if err == nil && o.ablations {
		played.Ablations, err = compare.PlayAblations(ctx, config, !o.loadsGiven(), step)
	}
	progress.end()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	report := played.Report(o.all)
	if o.out != "" {
		played.Result.Charts(report, o.threshold, o.max)
	}
	if failed := writeReport(c.OutOrStdout(), report, o.out); failed != nil {
		return failed
	}
	switch {
	case err == nil:
		return nil
	case len(played.Result.Outcomes) == 0:
		return fmt.Errorf("interrupted after %d of %d runs, before every scaler had finished a seed", progress.done,
			total)
	default:
		return fmt.Errorf("interrupted after %d of %d runs: the tables are of the seeds that every scaler had finished",
			progress.done, total)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/internal/lab/compare"
	"github.com/foresail/foresail/internal/lab/queue"
	"github.com/foresail/foresail/internal/lab/scaler"
	"github.com/foresail/foresail/internal/lab/workload"
	"github.com/foresail/foresail/pipeline"
)

const (
	traceProfile        = "file"
	mostSeeds           = 1000
	mostPods            = 1000
	mostSimulated       = 6 * time.Hour
	shortestStartup     = time.Second
	longestStartup      = 10 * time.Minute
	defaultStartup      = 19 * time.Second
	defaultSimulatedMin = 4
	defaultSimulatedMax = 20
)

const simulateHelp = `Simulate plays scalers against a load, request by request and in virtual time: what users would see
of each, and what it would take. It needs no cluster.

A pod is an event loop that does the 8 ms of work of a request in pieces. With too many requests in
flight it fails some, and clients give up after ten seconds. A new pod takes --startup to be ready,
ten seconds at the most until the proxy knows it, and half a minute to its full share of requests.
The model was fitted to what one paper measured of two scalers, hpa-cpu and keda. It is plausible,
not identified: look at differences rather than figures, and whether they survive --variants.

Scalers (--scaler):

  hpa-cpu            an HPA on CPU, with the HPA's own behaviour
  keda               an HPA on the utilisation of event loops, which is scraped every 5 s, likewise
  paper              the paper's scaler, which sets replicas itself every 5 s
  foresail-total     Foresail, through an HPA that reads predicted_load_total ...
  foresail-load      ... predicted_load ...
  foresail-replicas  ... or predicted_replicas
  foresail-direct    Foresail's own decision, without an HPA
  clairvoyant        a bound: knows the future, and orders each pod as long ahead as it takes until the
                     proxy knows it and half of its slow start is over: 39 s by default
  instant            a bound: knows the true load of each second, but not the future

The HPAs of foresail-* have the behaviour that docs/hpa.md recommends: up without tolerance and by up
to 400% in 15 s, down after 30 s. An HPA's own ignores 10%, doubles pods (or adds 4) in 15 s and keeps
them for 5 minutes. How much is the forecast's and how much the behaviour's tell keda/same-behavior and
hpa-cpu/same-behavior, which have that of foresail-*, and foresail-total/hpa-defaults (-load,
-replicas), which have the HPA's own.

The forecast has the recommended settings, or those of --spec but for threshold, minReplicas and
maxReplicas. startup.initial is what --spec says or, without one, --startup if that is given.

Loads (--profile): ramp and spike are the paper's; sine, sawtooth, noise, bursts, drift and falling
ask other things of a scaler. --trace plays one of your own instead, of six hours at the most:

  unix_seconds,requests_per_second
  1700000000,412
  1700000060,430

Each scaler meets the same arrivals and the same pods, seed by seed, so that differences are far
more certain than figures. The tables have means over the seeds, with half the 95% interval.
Success is of the requests sent; dropped ones were never sent, because too many were under way.
Under and over are the time with fewer and more pods than hold the threshold; violation is that in
which pods had more load than the threshold, saturated that in which they had more than they can do:
seconds, added up and told in minutes. Where clairvoyant is played, pod-seconds are told as a multiple
of its own too; that depends on its lead.

--lessons changes one thing about foresail-total at a time, and compares with what is recommended:
how old readings of pods are (freshness), for how late a reader a forecast is (delay), the HPA's
behavior, whether utilisation, requests or both are read (metric), and the forecast's method, each
with its own defaults. --scaler has no say in it. Where neither --profile nor --trace chooses loads,
lessons on what happens while load falls play further ones, and that on the method all eight.

--out gets summary.csv with the columns

  profile,scaler,seeds,success,mean_ms,p50_ms,p90_ms,p99_ms,errors,pod_seconds,under_s,over_s,actions,reversals

(success is a share), intervals.csv (every figure, half its interval, and how much more it is than
keda's), seeds.csv (every run), variants.csv and lessons.csv where they were played, and charts as
SVG and PNG. The same command line writes the same
bytes. Interrupted, it tells what was done by then.`

const simulateExamples = `  # The paper's comparison, with charts
  foresail simulate --out comparison

  # A quick look: one load, three scalers, three seeds
  foresail simulate --profile spike --scaler keda,paper,foresail-total --seeds 3

  # Your own hour, with your own settings, for pods that take a minute to start
  foresail simulate --trace checkout.csv --spec checkout-elu.yaml --startup 1m --max 40

  # Does the order of scalers depend on what a pod is taken to be?
  foresail simulate --variants --out variants

  # What is each of the recommended settings worth?
  foresail simulate --scaler keda --lessons --out lessons`

func newSimulateCommand() *cobra.Command {
	o := &simulateOptions{}
	c := &cobra.Command{
		Use:     "simulate [--profile NAME,...] [--trace FILE] [--scaler NAME,...] [--out DIR]",
		Short:   "Compare scalers request by request, in virtual time",
		Long:    simulateHelp,
		Example: simulateExamples,
		Args:    noArguments,

		DisableFlagsInUseLine: true,
	}
	o.addFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.startupGiven = c.Flags().Changed("startup")
		o.loadsGiven = c.Flags().Changed("profile") || o.trace != ""
		config, err := o.config(c.Flags().Changed("profile"))
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
	profiles, scalers  []string
	trace, spec, out   string
	scale, threshold   float64
	seeds, least, most int
	first              uint64
	startup            time.Duration
	startupGiven       bool
	variants, lessons  bool
	loadsGiven         bool // by --profile or --trace
}

func (o *simulateOptions) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&o.profiles, "profile", []string{"ramp", "spike"}, "`names` of loads to play: "+acceptedProfiles())
	f.StringVar(&o.trace, "trace", "", "`file` with a load to play: "+workload.TraceHelp)
	f.Float64Var(&o.scale, "trace-scale", 1, "`factor` that the trace's rates are multiplied by")
	f.StringSliceVar(&o.scalers, "scaler", compare.ScalerNames(), "`names` of the scalers to compare")
	f.IntVar(&o.seeds, "seeds", 20, "how many seeds each scaler meets")
	f.Uint64Var(&o.first, "seed", 1, "the first seed")
	f.Float64Var(&o.threshold, "threshold", 0.7, "utilisation that scalers are to hold, above 0 and below 1")
	f.IntVar(&o.least, "min", defaultSimulatedMin, "the fewest pods, which a run starts with")
	f.IntVar(&o.most, "max", defaultSimulatedMax, "the most pods")
	f.DurationVar(&o.startup, "startup", defaultStartup, "how long a pod takes to be ready, on average")
	f.StringVar(&o.spec, "spec", "", "`file` with a PredictedMetric or its spec, for the settings of foresail-*; empty takes the recommended ones")
	f.StringVar(&o.out, "out", "", "`directory` for summary.csv, further figures and charts; empty writes no files")
	f.BoolVar(&o.variants, "variants", false, "also play other models of pods, and tell whether the order of scalers changes; takes six times as long")
	f.BoolVar(&o.lessons, "lessons", false, "also change one setting after the other, and tell what each is worth; takes some minutes")
}

func acceptedProfiles() string {
	return strings.Join(workload.Names(), ", ") + ", or " + traceProfile + ", which is that of --trace"
}

// config makes a comparison of the flags. chosen tells whether profiles were named.
func (o *simulateOptions) config(chosen bool) (compare.Config, error) {
	if err := o.check(); err != nil {
		return compare.Config{}, err
	}
	profiles, err := o.loads(chosen)
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
		Profiles: profiles, Scalers: o.scalers, Model: model,
		Setup: scaler.Setup{
			Threshold: o.threshold, Min: o.least, Max: o.most, Startup: untilInFull(model),
			Params: settings, Paper: scaler.PaperParams(),
		},
	}
	for i := range o.seeds {
		c.Seeds = append(c.Seeds, o.first+uint64(i))
	}
	if err := c.Check(); err != nil {
		return compare.Config{}, usageError{err}
	}
	return c, nil
}

// untilInFull is how long a pod takes, on average, to be of full use: what the clairvoyant orders it ahead by. While the
// proxy starts it slowly it is of half use.
func untilInFull(m queue.Model) time.Duration {
	ms := m.Startup + (m.Notice+m.Refresh)/2 + m.SlowStart/2
	return time.Duration(ms) * time.Millisecond
}

func (o *simulateOptions) check() error {
	for _, c := range []struct {
		flag   string
		value  any
		ok     bool
		accept string
	}{
		{"seeds", o.seeds, o.seeds >= 1 && o.seeds <= mostSeeds, fmt.Sprintf("from 1 to %d", mostSeeds)},
		{"threshold", o.threshold, o.threshold > 0 && o.threshold < 1, "above 0 and below 1"},
		{"min", o.least, o.least >= 1 && o.least <= mostPods, fmt.Sprintf("from 1 to %d", mostPods)},
		{"max", o.most, o.most >= o.least && o.most <= mostPods, fmt.Sprintf("at least --min (%d) and at most %d", o.least, mostPods)},
		{"startup", o.startup, o.startup >= shortestStartup && o.startup <= longestStartup, fmt.Sprintf("from %s to %s", shortestStartup, longestStartup)},
		{"trace-scale", o.scale, o.scale > 0 && o.scale <= 1e9, "above 0 and at most 1e9"},
		{"scaler", "none", len(o.scalers) > 0, acceptedScalers()},
		{"profile", "none", len(o.profiles) > 0, acceptedProfiles()},
	} {
		if !c.ok {
			return badFlag(c.flag, c.value, c.accept)
		}
	}
	for i, name := range o.scalers {
		if !slices.Contains(compare.ScalerNames(), name) {
			return badFlag("scaler", fmt.Sprintf("%q", name), acceptedScalers())
		}
		if slices.Contains(o.scalers[:i], name) {
			return badFlag("scaler", fmt.Sprintf("%q twice", name), "each once")
		}
	}
	return nil
}

func acceptedScalers() string { return "one or more of " + strings.Join(compare.ScalerNames(), ", ") }

// loads are the profiles to play. A trace stands in for the profiles unless they were chosen too.
func (o *simulateOptions) loads(chosen bool) ([]compare.Profile, error) {
	names := o.profiles
	if o.trace != "" && !chosen {
		names = []string{traceProfile}
	}
	if o.trace != "" && !slices.Contains(names, traceProfile) {
		names = append(slices.Clone(names), traceProfile)
	}
	var profiles []compare.Profile
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
			return nil, badFlag("profile", fmt.Sprintf("%q twice", name), "each once")
		case name == traceProfile:
			trace, err := o.readTrace()
			if err != nil {
				return nil, err
			}
			profiles = append(profiles, compare.TraceProfile(trace))
		case slices.Contains(workload.Names(), name):
			profiles = append(profiles, compare.NamedProfile(name))
		default:
			return nil, badFlag("profile", fmt.Sprintf("%q", name), "one or more of "+acceptedProfiles())
		}
	}
	return profiles, nil
}

func (o *simulateOptions) readTrace() (*workload.Trace, error) {
	if o.trace == "" {
		return nil, badFlag("trace", "missing", "given with --profile "+traceProfile)
	}
	f, err := os.Open(o.trace)
	if err != nil {
		return nil, badFlag("trace", err, "a file: "+workload.TraceHelp)
	}
	defer func() { _ = f.Close() }() // it was only read
	trace, err := workload.ReadTrace(workload.TraceName(o.trace), f)
	if err != nil {
		return nil, usageError{fmt.Errorf("--trace %s: %w", o.trace, err)}
	}
	if slices.Contains(workload.Names(), trace.Name) {
		trace.Name += ".csv"
	}
	if trace.Length() > mostSimulated {
		return nil, badFlag("trace", fmt.Sprintf("%s is %s long", o.trace, trace.Length()), fmt.Sprintf("at most %s: every request is played", mostSimulated))
	}
	return trace.Scaled(o.scale), nil
}

// settings are those of Foresail's forecast.
func (o *simulateOptions) settings() (pipeline.Params, error) {
	if o.spec != "" {
		return readParams(o.spec)
	}
	p := scaler.RecommendedParams()
	if o.startupGiven {
		p.InitTimeout = o.startup
	}
	return p, nil
}

// makeOut makes the directory of --out, if it is given, before anything takes time.
func makeOut(out string) error {
	if out == "" {
		return nil
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return badFlag("out", err, "a directory that can be written to")
	}
	return nil
}

// run plays the comparison and tells what came of it; of one that was stopped, what had been done.
func (o *simulateOptions) run(c *cobra.Command, config compare.Config) error {
	ctx, total := c.Context(), config.Runs()
	if o.variants {
		total += config.VariantRuns()
	}
	if o.lessons {
		total += config.LessonRuns(!o.loadsGiven)
	}
	progress := newRunProgress(c.ErrOrStderr(), total)
	step := func(compare.Run) { progress.step() }
	result, err := compare.Play(ctx, config, step)
	told := told{result: result}
	if err == nil && o.variants {
		told.variants, err = compare.PlayVariants(ctx, config, result, step)
	}
	if err == nil && o.lessons {
		told.lessons, err = compare.PlayLessons(ctx, config, !o.loadsGiven, step)
	}
	progress.end()
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if failed := o.tell(c.OutOrStdout(), told); failed != nil {
		return failed
	}
	switch {
	case err == nil:
		return nil
	case len(result.Outcomes) == 0:
		return fmt.Errorf("stopped after %d of %d runs: no seed had met every scaler by then", progress.done, total)
	default:
		return fmt.Errorf("stopped after %d of %d runs: what is told is of the seeds that every scaler had met by then", progress.done, total)
	}
}

// told is what there is to tell.
type told struct {
	result   *compare.Result
	variants []compare.Variant
	lessons  []compare.Lesson
}

// tables writes what is for people.
func (t told) tables(w io.Writer) error {
	if err := t.result.WriteTable(w); err != nil {
		return err
	}
	if err := t.result.WriteCalibration(w); err != nil {
		return err
	}
	if len(t.variants) > 1 {
		if err := compare.WriteVariants(w, t.variants); err != nil {
			return err
		}
	}
	return compare.WriteLessons(w, t.lessons)
}

// tell writes the tables and files.
func (o *simulateOptions) tell(stdout io.Writer, t told) error {
	if err := t.tables(stdout); err != nil {
		return err
	}
	result := t.result
	if o.out == "" || len(result.Outcomes) == 0 {
		return nil
	}
	files := map[string]func(io.Writer) error{
		"summary.csv": result.WriteSummary, "intervals.csv": result.WriteIntervals, "seeds.csv": result.WriteSeeds,
	}
	if len(t.variants) > 1 {
		files["variants.csv"] = func(w io.Writer) error { return compare.WriteVariantsCSV(w, t.variants) }
	}
	if len(t.lessons) > 0 {
		files["lessons.csv"] = func(w io.Writer) error { return compare.WriteLessonsCSV(w, t.lessons) }
	}
	for _, chart := range result.Charts(o.threshold, o.most) {
		for _, format := range []string{"svg", "png"} {
			files[chart.Name+"."+format] = func(w io.Writer) error { return chart.Write(w, format) }
		}
	}
	for name, write := range files {
		if err := writeFile(filepath.Join(o.out, name), write); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file anew.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

package lab

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/lab/replay"
	"github.com/foresail/foresail/internal/schedule"
	"github.com/foresail/foresail/pipeline"
)

const replayHelp = `Replay runs the forecast over recorded events: the same pipeline that scales a cluster, without
one. Use it to audit a decision, to try other settings on what has happened, or to check another
implementation against this one.

The spec is a PredictedMetric, or its spec alone, in YAML or JSON; source and scaleTargetRef may be
absent. With spec.schedules the times below are Unix times, and the bounds of each moment hold.

The input is JSON Lines, in any order. Times are whole milliseconds from any origin.

  {"instance":"a","start":0}             instance a starts (and ends: "end"); an ID has one life
  {"instance":"a","t":1001,"v":0.4}      a sample of a, received at once ...
  {"instance":"a","t":1001,"v":0.4,"received":5000}           ... or later
  {"demand":0.5,"t":1000}                load that no instance carries yet; may have "received"
  {"target":4,"at":0}                    the planned count from then on
  {"run":15000}                          evaluate at now = 15000

A run sees the samples received by then. Of two samples of one instance and time the one received
last counts, and of those received together the one on the later line. An instance without a start
is there from its first sample on, as far as has been received. Without a target line the count is
that of the active instances; the first target line is a rise if fewer were active then. Of two
target lines for one time the later line counts.

The output is one line a run, in order of time: with json

  {"now","tick","level","trend","horizonMs","forecast","damped","contributionWeight","active",
   "loadNow","loadPredicted","direction","desired","action"}     or     {"now","error"}

where direction is Rising, Falling or Steady, and action ScaleUp, ScaleDown or Hold. Runs do not
influence each other, except with --cooldowns, which delays decisions after those of earlier runs,
and with --learn, which has them learn how the load goes on, as live forecasts do (method Adaptive):
record some hours with a run each second or so for that.
The startup time is not measured: it is startupTime.

A line that cannot be used ends the replay with its number and the reason, and exit code 1. The runs
on the lines before it are still evaluated, by what those lines say.`

const replayExamples = `  # A recorded ramp, for people
  foresail replay --filename docs/examples/replay/spec.yaml --input docs/examples/replay/events.jsonl --output table

  # A live object's settings; how often would it have scaled?
  kubectl get pm checkout-elu -o yaml > spec.yaml
  zcat events.jsonl.gz | foresail replay --filename spec.yaml --cooldowns | jq -r .action | sort | uniq -c`

func newReplayCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "replay --filename FILE [--input FILE|-] [--output json|table] [--cooldowns] [--learn]",
		Short:   "Run the forecast over recorded events",
		Long:    replayHelp,
		Example: replayExamples,
		Args:    cli.NoArguments,

		DisableFlagsInUseLine: true,
	}
	specPath := c.Flags().StringP("filename", "f", "", "`file` with a PredictedMetric or its spec (required)")
	inputPath := c.Flags().String("input", "-", "`file` with the events, - for standard input")
	output := cli.AddOutputFlag(c, string(replay.JSON), string(replay.Table))
	cooldowns := c.Flags().Bool("cooldowns", false, "apply the spec's cooldowns to the decisions")
	learn := c.Flags().Bool("learn", false, "have forecasts learn from what runs before them have seen")
	c.RunE = func(c *cobra.Command, _ []string) error {
		p, schedules, err := readScheduled(*specPath)
		if err != nil {
			return err
		}
		input, err := openInput(*inputPath, c.InOrStdin())
		if err != nil {
			return err
		}
		defer func() { _ = input.Close() }() // it was only read
		options := replay.Options{Params: p, Cooldowns: *cooldowns, Learn: *learn, Schedules: schedules}
		runs, err := replay.Run(c.Context(), input, c.OutOrStdout(), options, replay.Format(output.String()))
		if err == nil && runs == 0 {
			c.PrintErrln(`nothing to evaluate: the input has no line like {"run":15000}`)
		}
		return err
	}
	return c
}

// readParams reads a spec and converts it, without its schedules. Whatever is wrong with it makes
// the arguments unusable.
func readParams(path string) (pipeline.Params, error) {
	p, _, err := readScheduled(path)
	return p, err
}

// readScheduled is readParams, with the schedules.
func readScheduled(path string) (pipeline.Params, *schedule.Calendar, error) {
	const accept = "a file with a PredictedMetric or its spec, in YAML or JSON"
	if path == "" {
		return pipeline.Params{}, nil, cli.BadFlag("filename", "missing", accept)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return pipeline.Params{}, nil, cli.BadFlag("filename", err, accept)
	}
	spec, err := params.ParseSpec(data)
	if err != nil {
		return pipeline.Params{}, nil, cli.Unusable(fmt.Errorf("--filename %s: %w", path, err))
	}
	p, err := params.FromSpec(spec)
	if err != nil {
		return pipeline.Params{}, nil, cli.Unusable(fmt.Errorf("--filename %s: %w", path, err))
	}
	schedules, err := params.Schedules(spec, &p)
	return p, schedules, err
}

func openInput(path string, stdin io.Reader) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.BadFlag("input", err, "a file of JSON Lines, or - for standard input")
	}
	return f, nil
}

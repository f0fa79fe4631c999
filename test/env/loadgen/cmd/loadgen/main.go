// Command loadgen sends a load profile to endpoints on this machine: given ones, or the ready pods
// of a test control plane.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/foresail/foresail/test/env/loadgen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pods are the flags that choose ready pods as endpoints.
type pods struct {
	kubeconfig, namespace, selector string
	delay                           time.Duration
}

func command() *cobra.Command {
	var config loadgen.Config
	var profile string
	var targets []string
	var p pods
	c := &cobra.Command{
		Use:   "loadgen",
		Short: "Send HTTP requests to loopback endpoints at a rate that does not depend on the answers",
		Example: "  loadgen --profile 0s:10,150s:800,240s:800 --target 127.1.0.1:8080 --target 127.1.0.2:8080\n" +
			"  loadgen --profile 0s:50,60s:50 --kubeconfig kubeconfig --selector app=web",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if config.Profile, err = loadgen.ParseProfile(profile); err != nil {
				return fmt.Errorf("--profile: %w", err)
			}
			if config.Endpoints, err = endpoints(c.Context(), targets, p); err != nil {
				return err
			}
			return run(c.Context(), c.OutOrStdout(), config)
		},
	}
	flags := c.Flags()
	flags.StringVar(&profile, "profile", "", "points time:requests-per-second, joined by straight lines (required)")
	flags.StringArrayVar(&targets, "target", nil, "loopback IP:port to send to; may be repeated")
	flags.StringVar(&p.kubeconfig, "kubeconfig", "", "kubeconfig of the test control plane whose ready pods to send to")
	flags.StringVar(&p.namespace, "namespace", "", "namespace of the pods (default: all)")
	flags.StringVar(&p.selector, "selector", "", "label selector of the pods (default: all)")
	flags.DurationVar(&p.delay, "endpoint-delay", 0, "how late a change of the ready pods is noticed")
	flags.DurationVar(&config.SlowStart, "slow-start", 0, "time from an endpoint's first appearance to a full share")
	flags.StringVar(&config.Path, "path", "/", "path of every request")
	flags.BoolVar(&config.Poisson, "poisson", false, "random instead of evenly spaced arrivals")
	flags.Uint64Var(&config.Seed, "seed", 1, "seed of random arrivals")
	flags.IntVar(&config.MaxInFlight, "max-in-flight", 2000, "requests under way at which arrivals are dropped")
	flags.DurationVar(&config.Timeout, "timeout", 10*time.Second, "time one request may take")
	if err := c.MarkFlagRequired("profile"); err != nil {
		panic(err) // the flag is defined above
	}
	c.MarkFlagsOneRequired("target", "kubeconfig")
	c.MarkFlagsMutuallyExclusive("target", "kubeconfig")
	return c
}

func endpoints(ctx context.Context, targets []string, p pods) (loadgen.Endpoints, error) {
	if p.kubeconfig == "" {
		return loadgen.Static(targets), nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", p.kubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", p.kubeconfig, err)
	}
	ready, err := loadgen.NewReadyPods(client, p.namespace, p.selector, p.delay)
	if err != nil {
		return nil, err
	}
	return ready, ready.Start(ctx)
}

// run sends the load, with a line a second, and prints the report. An interrupted run is reported
// as far as it came.
func run(ctx context.Context, out io.Writer, config loadgen.Config) error {
	generator, err := loadgen.New(config)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); watch(watching, out, generator) }()
	report, err := generator.Run(ctx)
	stop()
	<-watched
	if report.Sent+report.Dropped > 0 {
		_, printing := io.WriteString(out, summary(report))
		err = errors.Join(err, printing)
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("loadgen: interrupted")
	}
	return err
}

func watch(ctx context.Context, out io.Writer, generator *loadgen.Generator) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// A terminal that has gone is no reason to end the run.
		_, _ = io.WriteString(out, line(generator.Stats()))
	}
}

func line(s loadgen.Stats) string {
	return fmt.Sprintf("%4.0fs %6.0f req/s  %3d endpoints  %4d in flight  %7d sent %5d failed %5d timed out %5d dropped  p50 %v p90 %v p99 %v\n",
		s.Elapsed.Seconds(), s.Rate, s.Endpoints, s.InFlight, s.Sent, s.Failed, s.TimedOut, s.Dropped,
		round(s.Recent.P50), round(s.Recent.P90), round(s.Recent.P99))
}

func summary(r loadgen.Report) string {
	var text strings.Builder
	fmt.Fprintf(&text, "sent %d  ok %d  failed %d  timed out %d  canceled %d  dropped %d  success %.2f%%\n",
		r.Sent, r.OK, r.Failed, r.TimedOut, r.Canceled, r.Dropped, 100*r.Success())
	for _, reason := range slices.Sorted(maps.Keys(r.Failures)) {
		fmt.Fprintf(&text, "failed %d: %s\n", r.Failures[reason], reason)
	}
	fmt.Fprintf(&text, "mean %v  p50 %v  p90 %v  p99 %v  max %v\n",
		round(r.Latency.Mean), round(r.Latency.P50), round(r.Latency.P90), round(r.Latency.P99), round(r.Latency.Max))
	return text.String()
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

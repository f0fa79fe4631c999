// Command workload serves HTTP on the loopback addresses of the running pods of a test control plane.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/foresail/foresail/test/env/workload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	options := workload.Options{Model: workload.DefaultModel()}
	var kubeconfig string
	c := &cobra.Command{
		Use:           "workload",
		Short:         "Serve HTTP on the loopback addresses of running pods that have no containers",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
			}
			return workload.Run(c.Context(), config, options)
		},
	}
	flags := c.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the test control plane (required)")
	flags.StringVar(&options.Namespace, "namespace", "", "namespace of the pods (default: all)")
	flags.StringVar(&options.Selector, "selector", "", "label selector of the pods (default: all)")
	flags.DurationVar(&options.Model.ServiceTime, "service-time", options.Model.ServiceTime,
		"mean time one request holds a pod, where its annotation "+workload.ServiceTimeAnnotation+" says nothing")
	flags.Float64Var(&options.Model.Jitter, "jitter", options.Model.Jitter, "spread of service times, 0 to 1")
	flags.IntVar(&options.Model.QueueLimit, "queue-limit", options.Model.QueueLimit,
		"requests one pod holds before it answers 503")
	flags.Uint64Var(&options.Seed, "seed", 1, "seed of service times")
	flags.DurationVar(&options.Drain, "drain", 10*time.Second, "time for requests under way when their pod goes away")
	if err := c.MarkFlagRequired("kubeconfig"); err != nil {
		panic(err) // the flag is defined above
	}
	return c
}

// Command monitoring builds Prometheus, promtool and metrics-server for the tests, some minutes the
// first time, and prints where they are.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/foresail/foresail/test/env/monitoring"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	binaries, err := monitoring.Build(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		stop()
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, binaries.Dir)
}

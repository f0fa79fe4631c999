package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main is the TestMain of a package whose tests share a cluster: it ends the process with the code that run returns, and with 1 after
// an error, which it prints. An interrupt ends run's context, so that run can stop what it has started.
func Main(run func(context.Context) (code int, err error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

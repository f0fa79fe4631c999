package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Main is the TestMain of a package whose tests share a cluster: it ends the process with the code
// that run returns, and with 1 after an error, which it prints. An interrupt ends run's context, so
// that run can stop what it has started.
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

// MainBorrowing is the TestMain of a package whose tests share an API server that is borrowed as by
// [Borrow]. prepare keeps it for the tests and fills it.
func MainBorrowing(m *testing.M, prepare func(context.Context, *Cluster) error) {
	Main(func(ctx context.Context) (code int, err error) {
		c, release, err := Borrow(ctx, os.Stderr)
		if err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, release()) }()
		if err := prepare(ctx, c); err != nil {
			return 1, err
		}
		return m.Run(), nil
	})
}

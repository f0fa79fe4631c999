// Command moto installs moto's server for the tests, which takes half a minute the first time, and
// prints its Python.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	awstest "github.com/foresail/foresail/test/env/aws"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	python, err := awstest.Build(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "moto:", err)
		stop()
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, python)
}

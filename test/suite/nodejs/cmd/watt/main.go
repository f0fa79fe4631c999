// Command watt installs the Watt application of the tests, half a minute the first time, and prints
// its folder.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/foresail/foresail/test/suite/nodejs/watt"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	installation, err := watt.Install(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "watt:", err)
		stop()
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, installation.Dir)
}

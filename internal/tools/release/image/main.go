package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/foresail/foresail/internal/tools/release/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	var o Options
	flags.StringVar(&o.Version, "version", "", "the version of the release, such as v1.2.3")
	flags.StringVar(&o.Revision, "revision", "", "the commit that the binaries were built from")
	out := flags.String("out", "", "the `folder` to write an OCI layout to; what is there is replaced")
	push := flags.String("push", "",
		"a `reference` to push to as well, such as ghcr.io/foresail/foresail:v1.2.3, with the credentials of docker login")
	err := flags.Parse(args)
	if err != nil {
		return err
	}
	if *out == "" {
		return errors.New("--out is missing: must be a folder")
	}
	if o.Created, err = build.Date(); err != nil {
		return err
	}
	release, err := Assemble(o, flags.Args()...)
	if err != nil {
		return err
	}
	if err := release.Write(*out, o.Version); err != nil {
		return err
	}
	digest, err := release.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s has foresail %s for %d platforms, %s\n", *out, o.Version, len(flags.Args()), digest)
	if *push == "" {
		return nil
	}
	pushed, err := release.Push(ctx, *push)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "pushed %s\n", pushed)
	return nil
}

// Command release makes what Foresail is installed from. `make image` and `make dist` run it; `go run . --help` lists what it makes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/foresail/foresail/internal/tools/release/image"
)

const usage = `Usage:
  release image --version V --out FOLDER [--push REFERENCE] BINARY...
  release dist --root FOLDER --version V --out FOLDER [--image FOLDER] [BINARY...]

Commands:
  image   an image for the platforms of the binaries, as an OCI layout, and pushed if asked for
  dist    install.yaml, the packaged chart, SHA256SUMS; with binaries an archive of each, and a manifest for krew

SOURCE_DATE_EPOCH, the time of the commit in seconds, is the time of all that is made: what is made twice is the same.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	commands := map[string]func(context.Context, []string, io.Writer) error{"image": runImage, "dist": runDist}
	if len(args) > 0 {
		if command, ok := commands[args[0]]; ok {
			return command(ctx, args[1:], w)
		}
	}
	_, err := io.WriteString(w, usage)
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		return err
	}
	return errors.Join(err, fmt.Errorf("unknown command %q: must be image or dist", args))
}

// sourceDate returns the time that everything is dated with.
func sourceDate() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q: must be the time of the commit in seconds, as of git log -1 --format=%%ct", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func runImage(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	var o image.Options
	flags.StringVar(&o.Version, "version", "", "the version of the release, such as v1.2.3")
	flags.StringVar(&o.Revision, "revision", "", "the commit that the binaries were built from")
	out := flags.String("out", "", "the `folder` to write an OCI layout to; what is there is replaced")
	push := flags.String("push", "", "a `reference` to push to as well, such as ghcr.io/foresail/foresail:v1.2.3, with the credentials of docker login")
	err := flags.Parse(args)
	if err != nil {
		return err
	}
	if *out == "" {
		return errors.New("--out is missing: must be a folder")
	}
	if o.Created, err = sourceDate(); err != nil {
		return err
	}
	release, err := image.Assemble(o, flags.Args()...)
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

package foresail

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
)

// Binary is a foresail to run.
type Binary struct {
	path     string
	profiles string // the folder for profiles, "" for none
}

// Build builds the command of this repository into the cache folder.
func Build(ctx context.Context, progress io.Writer) (Binary, error) {
	return build(ctx, "foresail", progress, GoBuild{})
}

// BuildReplaced builds the foresail command of this repository with other content of some files, by
// their paths in it.
func BuildReplaced(ctx context.Context, name string, progress io.Writer, files map[string]string) (Binary, error) {
	return build(ctx, name, progress, GoBuild{Replace: files})
}

// Flags choose what a benchmark measures.
type Flags struct{ binary, profiles string }

// DefineFlags adds -foresail and -profiles to the flags of a test binary.
func DefineFlags() *Flags {
	var f Flags
	flag.StringVar(&f.binary, "foresail", "", "measure this foresail binary; empty builds one from the source")
	flag.StringVar(&f.profiles, "profiles", "", "folder to write CPU and heap profiles of foresail to")
	return &f
}

// Build returns the binary that the flags ask for.
func (f *Flags) Build(ctx context.Context, progress io.Writer) (Binary, error) {
	if f.binary != "" {
		return Binary{path: f.binary, profiles: f.profiles}, nil
	}
	b, err := Build(ctx, progress)
	b.profiles = f.profiles
	return b, err
}

// Given reports whether the flags ask for another binary than one of the source.
func (f *Flags) Given() bool { return *f != Flags{} }

func build(ctx context.Context, name string, progress io.Writer, g GoBuild) (Binary, error) {
	root, err := controlplane.Root()
	if err != nil {
		return Binary{}, err
	}
	defer controlplane.Announce(progress, "building foresail")()
	g.Package, g.Output = "./cmd/foresail", filepath.Join(root, ".cache", "bin", name)
	return Binary{path: g.Output}, g.Run(ctx)
}

// GoBuild is a build of a command of this repository.
type GoBuild struct {
	Dir     string // in the repository; "" stands for its root
	Package string
	Output  string
	Flags   []string
	Env     []string          // further variables, as name=value
	Replace map[string]string // the content of files, by path in the repository, in place of the present one
}

// Run builds.
func (g GoBuild) Run(ctx context.Context) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(g.Output), 0o755); err != nil {
		return err
	}
	// The go command leaves its work folder behind if it is interrupted early, so it is given one
	// to leave it in.
	work, err := os.MkdirTemp(filepath.Dir(g.Output), ".build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // what matters has been moved out of it by then
	overlay, err := g.overlay(root, work)
	if err != nil {
		return err
	}
	args := append([]string{"build", "-overlay", overlay, "-o", g.Output}, g.Flags...)
	command := exec.CommandContext(ctx, "go", append(args, g.Package)...)
	command.Dir, command.Env = filepath.Join(root, g.Dir), append(append(os.Environ(), "GOTMPDIR="+work), g.Env...)
	// An interrupt lets the go command end its own children.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 5 * time.Second
	if output, err := command.CombinedOutput(); ctx.Err() != nil {
		return fmt.Errorf("build %s: %w", g.Package, context.Cause(ctx))
	} else if err != nil {
		return fmt.Errorf("build %s: %w\n%s", g.Package, err, output)
	}
	return nil
}

// overlay returns the file that names the replacements to the go command, "" for none.
func (g GoBuild) overlay(root, work string) (string, error) {
	if len(g.Replace) == 0 {
		return "", nil
	}
	replace := map[string]string{}
	for file, content := range g.Replace {
		replacement := filepath.Join(work, fmt.Sprintf("replacement-%d.go", len(replace)))
		if err := os.WriteFile(replacement, []byte(content), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = replacement
	}
	encoded, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(work, "overlay.json")
	return list, os.WriteFile(list, encoded, 0o600)
}

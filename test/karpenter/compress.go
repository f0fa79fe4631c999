package karpenter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/foresail/foresail/test/controlplane"
)

// constants are times that Karpenter has no setting for, by the file of its module: how often it looks for nodes to remove, and how long
// it waits before it looks at a removal once more.
var constants = map[string]string{
	"pkg/controllers/disruption/controller.go":    "pollingPeriod",
	"pkg/controllers/disruption/consolidation.go": "commandValidationDelay",
}

// BuildCompressed builds a Karpenter whose constants are divided by a number, for loads whose times are divided by it. Otherwise it is
// the same. The first time takes minutes on two cores more than Build, then nothing.
func BuildCompressed(ctx context.Context, progress io.Writer, by int) (Binaries, error) {
	plain, err := Build(ctx, progress)
	if err != nil {
		return Binaries{}, err
	}
	out := Binaries{fmt.Sprintf("%s-divided-by-%d", plain.dir, by)}
	if _, err := os.Stat(out.path(binary)); err == nil {
		return out, nil
	}
	defer controlplane.Announce(progress, "building Karpenter with shorter times")()
	work, err := os.MkdirTemp("", "karpenter-*")
	if err != nil {
		return Binaries{}, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := copyModule(ctx, work); err != nil {
		return Binaries{}, err
	}
	for file, name := range constants {
		if err := divide(filepath.Join(work, "karpenter", file), name, by); err != nil {
			return Binaries{}, err
		}
	}
	if err := os.MkdirAll(out.dir, 0o755); err != nil {
		return Binaries{}, err
	}
	if _, err := os.Stat(out.path(crds)); errors.Is(err, os.ErrNotExist) {
		if err := os.CopyFS(out.path(crds), os.DirFS(plain.path(crds))); err != nil {
			return Binaries{}, err
		}
	}
	built := filepath.Join(out.dir, fmt.Sprintf(".%s-%d", binary, os.Getpid()))
	if _, err := run(ctx, work, "build", "-trimpath", "-ldflags", "-s -w", "-o", built, module+"/kwok"); err != nil {
		return Binaries{}, err
	}
	return out, os.Rename(built, out.path(binary))
}

// copyModule copies the module that pins Karpenter to a folder, and Karpenter's own below it, to be changed.
func copyModule(ctx context.Context, to string) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	components := filepath.Join(root, programs().Module)
	if err := os.CopyFS(to, os.DirFS(components)); err != nil {
		return err
	}
	source, err := run(ctx, components, "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(to, "karpenter"), os.DirFS(strings.TrimSpace(source))); err != nil {
		return err
	}
	_, err = run(ctx, to, "mod", "edit", "-replace", module+"=./karpenter")
	return err
}

// divide divides a constant in a file, such as "const pollingPeriod = 10 * time.Second".
func divide(file, constant string, by int) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	line := regexp.MustCompile(`(?m)^const ` + constant + ` = \d+ \* time\.\w+$`)
	if n := len(line.FindAllIndex(text, -1)); n != 1 {
		return fmt.Errorf("%s: want one constant %s, not %d", file, constant, n)
	}
	return os.WriteFile(file, line.ReplaceAll(text, fmt.Appendf(nil, "$0 / %d", by)), 0o600)
}

// run runs the go command in a folder and returns its output.
func run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, &stderr)
	}
	return string(out), nil
}

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

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/foresail"
)

// constants are times that Karpenter has no setting for, by the file of its module: how often it
// looks for nodes to remove, and how long it waits before it looks at a removal once more.
var constants = map[string]string{
	"pkg/controllers/disruption/controller.go":    "pollingPeriod",
	"pkg/controllers/disruption/consolidation.go": "commandValidationDelay",
}

// BuildCompressed builds a Karpenter whose constants are divided by a number, for loads whose times
// are divided by it. Otherwise it is the same. The first time takes minutes on two cores more than
// Build, then nothing.
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
		file = filepath.Join(work, "karpenter", file)
		text, err := os.ReadFile(file)
		if err != nil {
			return Binaries{}, err
		}
		if text, err = divide(text, "const "+name+" = ", by); err != nil {
			return Binaries{}, fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
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

// divide divides a time that a line of Go has, such as "const pollingPeriod = 10 * time.Second".
// The pattern is what is in front of it.
func divide(text []byte, pattern string, by int) ([]byte, error) {
	line := regexp.MustCompile(`(?m)^(` + pattern + `)((?:\d+ ?\* ?)?time\.\w+)`)
	if n := len(line.FindAllIndex(text, -1)); n != 1 {
		return nil, fmt.Errorf("want one line with %s and a time, not %d", pattern, n)
	}
	return line.ReplaceAll(text, fmt.Appendf(nil, "$1$2 / %d", by)), nil
}

// times are those that a WorkerPool has no setting for: how often an open action is looked at, how
// long a tainted node is kept for pods that are on their way to it, and how long a cycle waits for
// the next one, by file and by what is in front of them.
var times = map[string][]string{
	"nodepool/options.go": {`\to\.StepInterval = orElse\(o\.StepInterval, `, `\to\.BindGrace = orElse\(o\.BindGrace, `},
	"nodepool/run.go":     {`\tleastPause = `},
}

// BuildForesailCompressed builds a foresail whose constants are divided by a number, as
// [BuildCompressed] does with Karpenter.
func BuildForesailCompressed(ctx context.Context, progress io.Writer, by int) (foresail.Binary, error) {
	root, err := controlplane.Root()
	if err != nil {
		return foresail.Binary{}, err
	}
	files := map[string]string{}
	for file, patterns := range times {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return foresail.Binary{}, err
		}
		for _, pattern := range patterns {
			if text, err = divide(text, pattern, by); err != nil {
				return foresail.Binary{}, fmt.Errorf("%s: %w", file, err)
			}
		}
		files[file] = string(text)
	}
	return foresail.BuildReplaced(ctx, fmt.Sprintf("foresail-divided-by-%d", by), progress, files)
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

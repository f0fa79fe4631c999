package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// Binaries is a folder that holds the five programs and the kwok stages of one build.
type Binaries struct {
	// Dir is named after what the build depends on, so its content never changes.
	Dir string
}

// Path returns where the binary of a component lies.
func (b Binaries) Path(c Component) string { return filepath.Join(b.Dir, string(c)) }

// Build compiles what is missing of the control plane into <repository>/.cache/controlplane and returns where it lies.
// The first time takes minutes and downloads modules; after that it takes milliseconds and touches no network. Several
// processes may build at once: one works, the others wait. What it does is told to progress, at least every ten seconds.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	root, err := Root()
	if err != nil {
		return Binaries{}, fmt.Errorf("build control plane: %w", err)
	}
	return BuildIn(ctx, root, progress)
}

// BuildIn is [Build] for the repository whose root folder is given.
func BuildIn(ctx context.Context, root string, progress io.Writer) (Binaries, error) {
	if progress == nil {
		progress = io.Discard
	}
	b := builder{module: filepath.Join(root, componentsDir), progress: progress}
	key, err := b.key(ctx)
	if err != nil {
		return Binaries{}, fmt.Errorf("build control plane: %w", err)
	}
	cache := filepath.Join(root, ".cache", "controlplane")
	b.out = filepath.Join(cache, key)
	if b.complete() {
		return Binaries{Dir: b.out}, nil
	}
	if err := b.buildLocked(ctx, filepath.Join(cache, key+".lock")); err != nil {
		return Binaries{}, fmt.Errorf("build control plane: %w", err)
	}
	return Binaries{Dir: b.out}, nil
}

// builder builds the components of one module into one folder.
type builder struct {
	module   string
	out      string
	progress io.Writer
}

// key names a build after everything that its result depends on.
func (b builder) key(ctx context.Context) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(b.module, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
	}
	toolchain, err := b.goCommand(ctx, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	flags, _ := linkerFlags("v0.0.0")
	fmt.Fprintln(hash, strings.TrimSpace(string(toolchain)), runtime.GOOS, runtime.GOARCH, flags, kwokStages)
	for _, c := range Components() {
		fmt.Fprintln(hash, c, mainPackages[c])
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// products lists the files of a complete build.
func (b builder) products() []string {
	var files []string
	for _, c := range Components() {
		files = append(files, filepath.Join(b.out, string(c)))
	}
	for _, stage := range kwokStages {
		files = append(files, b.stagePath(stage))
	}
	return files
}

func (b builder) stagePath(stage string) string {
	return filepath.Join(b.out, "stages", filepath.Base(stage))
}

func (b builder) complete() bool {
	for _, file := range b.products() {
		if !exists(file) {
			return false
		}
	}
	return true
}

// buildLocked builds what is missing while no other process does.
func (b builder) buildLocked(ctx context.Context, lockPath string) error {
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(lockPath, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := b.waitForLock(ctx, lock); err != nil {
		return err
	}
	if b.complete() {
		return nil
	}
	version, err := b.kubernetesVersion(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.progress, "control plane: building Kubernetes %s, which is done once and takes some minutes\n", version)
	flags, err := linkerFlags(version)
	if err != nil {
		return err
	}
	for i, c := range Components() {
		if exists(filepath.Join(b.out, string(c))) {
			continue
		}
		title := fmt.Sprintf("building %s (%d of %d)", c, i+1, len(mainPackages))
		if err := b.buildComponent(ctx, c, flags, title); err != nil {
			return err
		}
	}
	return b.copyStages(ctx)
}

func (b builder) waitForLock(ctx context.Context, lock *os.File) error {
	report := newReporter(b.progress, "waiting for another process that builds the control plane")
	defer report.stop()
	for {
		err := tryLock(lock)
		if !errors.Is(err, errLocked) {
			return err
		}
		report.start()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// buildComponent compiles one program and moves it into place in one step, so that no one ever runs half a binary.
func (b builder) buildComponent(ctx context.Context, c Component, flags, title string) error {
	tmp, err := os.MkdirTemp(b.out, ".build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	report := newReporter(b.progress, title)
	report.start()
	defer report.stop()
	binary := filepath.Join(tmp, string(c))
	// -v names the packages as they are compiled, which is all the progress the go command tells.
	cmd := b.command(ctx, "build", "-v", "-trimpath", "-ldflags", flags, "-o", binary, mainPackages[c])
	// The go command leaves its work folder behind if it is interrupted early, so it is given one that is removed.
	cmd.Env = append(cmd.Env, "GOTMPDIR="+tmp)
	output := &compilerOutput{report: report}
	cmd.Stderr = output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: go build in %s: %w\n%s", c, b.module, ctxCause(ctx, err), output.tail())
	}
	return os.Rename(binary, filepath.Join(b.out, string(c)))
}

// copyStages takes kwok's own stages out of its module, so that a later start needs neither go nor the module cache.
func (b builder) copyStages(ctx context.Context) error {
	dir, err := b.goCommand(ctx, "list", "-m", "-f", "{{.Dir}}", kwokModule)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.out, "stages"), 0o755); err != nil {
		return err
	}
	for _, stage := range kwokStages {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), stage))
		if err != nil {
			return fmt.Errorf("%s: stage: %w", kwokModule, err)
		}
		if err := writeFileAtomic(b.stagePath(stage), data); err != nil {
			return err
		}
	}
	return nil
}

// kubernetesVersion reads the pinned version, such as v1.36.3, from the module file without touching the network.
func (b builder) kubernetesVersion(ctx context.Context) (string, error) {
	data, err := b.goCommand(ctx, "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(data, &mod); err != nil {
		return "", fmt.Errorf("%s/go.mod: %w", b.module, err)
	}
	for _, require := range mod.Require {
		if require.Path == kubernetesModule {
			return require.Version, nil
		}
	}
	return "", fmt.Errorf("%s/go.mod: requires no %s", b.module, kubernetesModule)
}

// linkerFlags stamps the version into the binaries, which would otherwise report v0.0.0-master.
func linkerFlags(version string) (string, error) {
	v, err := utilversion.ParseSemantic(version)
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", kubernetesModule, err)
	}
	const pkg = "k8s.io/component-base/version."
	return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%d -X %sgitMinor=%d",
		pkg, version, pkg, v.Major(), pkg, v.Minor()), nil
}

// command prepares a go command in the components' module, shielded from settings meant for other modules.
func (b builder) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	// An interrupt lets the go command remove its work folder.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (b builder) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := b.command(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), b.module, ctxCause(ctx, err), &stderr)
	}
	return out, nil
}

// ctxCause prefers the reason why a command was interrupted to "signal: interrupt".
func ctxCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func writeFileAtomic(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".write-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(data); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

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
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Program is a command to build.
type Program struct {
	// Name is that of its binary.
	Name string
	// Package is the import path of its main package.
	Package string
}

// defaultName returns the name that "go build -o folder/" gives to the binary: the last element of
// the import path, or the one before it if that is a major version.
func (p Program) defaultName() string {
	dir, name := path.Split(p.Package)
	if majorVersion.MatchString(name) {
		return path.Base(dir)
	}
	return name
}

var majorVersion = regexp.MustCompile(`^v([2-9]|[1-9][0-9]+)$`)

// Programs are commands to build from a module of this repository that pins them, and where to keep them.
type Programs struct {
	// Title stands for all of them in progress and errors, such as "control plane".
	Title string
	// Module is the module's folder, relative to the repository's root. It has a go.mod and a
	// go.sum. What it requires is no older than what the repository's own module requires: the same
	// versions are compiled once, for the programs and for tests.
	Module string
	// Cache is the name of the folder within .cache that each build has a folder of its own in.
	Cache string
	// List is what to build. The last elements of the import paths differ.
	List []Program
	// Tags are build tags, separated by commas; "" for none.
	Tags string
	// Release is the module, required by Module, whose version counts as that of the programs.
	Release string
	// Stamp returns the linker flags that set the version which the programs report, such as v1.37.2.
	Stamp func(version string) (string, error)
	// Assets are files that the programs need beside them.
	Assets Assets
}

// Assets are files of a required module that are kept with the programs.
type Assets struct {
	// Module is the one that has them.
	Module string
	// Files are their paths within the module.
	Files []string
	// Dir is the folder, within that of the programs, that they are copied to, by their base names.
	Dir string
}

// Build compiles what is missing into <root>/.cache/<Cache> and returns the folder in which it
// lies. The folder is named after what the build depends on, so its content never changes. The
// first time takes minutes and downloads modules; after that it takes milliseconds and touches no
// network. Several processes may build at once: one works, the others wait. What it does is told to
// progress, nil for nobody, at least every ten seconds.
func (p Programs) Build(ctx context.Context, root string, progress io.Writer) (dir string, err error) {
	if progress == nil {
		progress = io.Discard
	}
	b, err := p.newBuilder(ctx, root, progress)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p.Title, err)
	}
	if b.complete() {
		return b.out, nil
	}
	if err := b.buildLocked(ctx, b.out+".lock"); err != nil {
		return "", fmt.Errorf("build %s: %w", p.Title, err)
	}
	return b.out, nil
}

// Download fetches the modules of the programs unless they are built, so that Build finds them. It
// is for the time in which another build keeps the processors busy. Errors are left to Build.
func (p Programs) Download(ctx context.Context, root string) {
	b, err := p.newBuilder(ctx, root, io.Discard)
	if err != nil || b.complete() {
		return
	}
	args := []string{"list", "-deps", "-f", "{{.Name}}"}
	for _, program := range b.List {
		args = append(args, program.Package)
	}
	_, _ = b.goCommand(ctx, args...)
}

// builder builds the programs of one module into one folder.
type builder struct {
	Programs
	module   string
	out      string
	progress io.Writer
}

// newBuilder returns the builder of the folder that is named after what the build depends on.
func (p Programs) newBuilder(ctx context.Context, root string, progress io.Writer) (builder, error) {
	b := builder{Programs: p, module: filepath.Join(root, p.Module), progress: progress}
	key, err := b.key(ctx)
	b.out = filepath.Join(root, ".cache", p.Cache, key)
	return b, err
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
	flags, err := b.linkerFlags("v0.0.0")
	if err != nil {
		return "", err
	}
	fmt.Fprintln(hash, strings.TrimSpace(string(toolchain)), runtime.GOOS, runtime.GOARCH, flags, b.Assets.Files)
	for _, p := range b.List {
		fmt.Fprintln(hash, p.Name, p.Package)
	}
	if b.Tags != "" {
		fmt.Fprintln(hash, b.Tags)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// products lists the files of a complete build.
func (b builder) products() []string {
	var files []string
	for _, p := range b.List {
		files = append(files, filepath.Join(b.out, p.Name))
	}
	for _, asset := range b.Assets.Files {
		files = append(files, b.assetPath(asset))
	}
	return files
}

func (b builder) assetPath(file string) string {
	return filepath.Join(b.out, b.Assets.Dir, filepath.Base(file))
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
	if err := waitForLock(ctx, lock, b.newReporter(alreadyBuilding)); err != nil {
		return err
	}
	if b.complete() {
		return nil
	}
	version, err := b.releaseVersion(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.progress, "%s: building %s %s, once, which takes minutes\n", b.Title, b.Release, version)
	flags, err := b.linkerFlags(version)
	if err != nil {
		return err
	}
	if err := b.buildPrograms(ctx, b.List, flags); err != nil {
		return err
	}
	return b.copyAssets(ctx)
}

// alreadyBuilding is the title of a wait.
const alreadyBuilding = "waiting for another process that builds the same"

func (b builder) newReporter(title string) *reporter {
	return newReporter(b.progress, b.Title+": "+title)
}

// waitForLock takes a lock and reports while another process holds it.
func waitForLock(ctx context.Context, lock *os.File, report *reporter) error {
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
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// buildPrograms compiles programs with one go command, which links one while it compiles another,
// and moves each binary into place once all are built, so that half a binary is never run.
func (b builder) buildPrograms(ctx context.Context, list []Program, flags string) error {
	tmp, err := os.MkdirTemp(b.out, ".build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	var names []string
	// -v names the packages as they are compiled, the only progress that the go command reports.
	args := []string{"build", "-v", "-tags", b.Tags, "-ldflags", flags, "-o", tmp + string(filepath.Separator)}
	for _, p := range list {
		names, args = append(names, p.Name), append(args, p.Package)
	}
	report := b.newReporter("building " + strings.Join(names, ", "))
	report.start()
	defer report.stop()
	cmd := b.command(ctx, args...)
	// The go command leaves its work folder behind if it is interrupted early, so it is given one
	// that is removed.
	cmd.Env = append(cmd.Env, "GOTMPDIR="+tmp)
	output := &compilerOutput{report: report}
	cmd.Stderr = output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: go build in %s: %w\n%s", strings.Join(names, ", "), b.module, ctxCause(ctx, err),
			output.tail())
	}
	for _, p := range list {
		if err := os.Rename(filepath.Join(tmp, p.defaultName()), filepath.Join(b.out, p.Name)); err != nil {
			return err
		}
	}
	return nil
}

// copyAssets takes files out of a module, so that a later start needs neither go nor the module cache.
func (b builder) copyAssets(ctx context.Context) error {
	if len(b.Assets.Files) == 0 {
		return nil
	}
	dir, err := b.goCommand(ctx, "list", "-m", "-f", "{{.Dir}}", b.Assets.Module)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.out, b.Assets.Dir), 0o755); err != nil {
		return err
	}
	for _, asset := range b.Assets.Files {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), asset))
		if err != nil {
			return fmt.Errorf("%s: %w", b.Assets.Module, err)
		}
		if err := writeFileAtomic(b.assetPath(asset), data); err != nil {
			return err
		}
	}
	return nil
}

// releaseVersion reads the pinned version, such as v1.37.2, from the module file without touching
// the network.
func (b builder) releaseVersion(ctx context.Context) (string, error) {
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
		if require.Path == b.Release {
			return require.Version, nil
		}
	}
	return "", fmt.Errorf("%s/go.mod: requires no %s", b.module, b.Release)
}

// linkerFlags leaves out what only debuggers read, and stamps the version.
func (b builder) linkerFlags(version string) (string, error) {
	stamp, err := b.Stamp(version)
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", b.Release, err)
	}
	return "-s -w " + stamp, nil
}

// command prepares a go command in the programs' module, shielded from settings meant for other modules.
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

// RootEnv is the environment variable with the path of the repository, for programs that run elsewhere.
const RootEnv = "FORESAIL_ROOT"

// componentsDir is where the module that pins the components lies, relative to the repository's root.
const componentsDir = "test/env/controlplane/components"

// Root returns the root folder of the repository: $FORESAIL_ROOT, or else the one that this source
// file was compiled from, or else the nearest one above the working directory.
func Root() (string, error) {
	if dir := os.Getenv(RootEnv); dir != "" {
		if !isRoot(dir) {
			return "", fmt.Errorf("%s=%q: no %s/go.mod in that folder; give the root of the repository", RootEnv, dir,
				componentsDir)
		}
		return filepath.Abs(dir)
	}
	// With -trimpath the file is named by its import path and not found here.
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Join(filepath.Dir(file), "..", ".."); filepath.IsAbs(file) && isRoot(dir) {
			return dir, nil
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("repository root: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if isRoot(dir) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("repository root: not found above the working directory; set " + RootEnv)
		}
	}
}

func isRoot(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, componentsDir, "go.mod"))
	return err == nil
}

package awstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
)

//go:embed requirements.txt
var requirements []byte

// Build installs moto's server into <repository>/.cache/moto and returns the path of its Python.
// The folder is named by a hash of its dependencies, so its content never changes. The first call
// takes about half a minute and downloads from PyPI; later calls take milliseconds and use no
// network. It needs python3 with its venv module.
func Build(ctx context.Context, progress io.Writer) (python string, err error) {
	root, err := controlplane.Root()
	if err != nil {
		return "", fmt.Errorf("install moto: %w", err)
	}
	version, err := run(ctx, "python3", "-c", "import sys; print(sys.prefix, sys.version)")
	if err != nil {
		return "", fmt.Errorf("install moto: python3 3.10 or later is needed: %w", err)
	}
	hash := sha256.Sum256(append([]byte(version), requirements...))
	dir := filepath.Join(root, ".cache", "moto", hex.EncodeToString(hash[:])[:16])
	if err := controlplane.MakeOnce(ctx, "moto", dir, progress, func(ctx context.Context, note func(string)) error {
		return install(ctx, dir, note)
	}); err != nil {
		return "", fmt.Errorf("install moto: %w", err)
	}
	return pythonOf(dir), nil
}

func pythonOf(dir string) string { return filepath.Join(dir, "bin", "python") }

func install(ctx context.Context, dir string, note func(string)) error {
	note("creating a virtual environment")
	if _, err := run(ctx, "python3", "-m", "venv", dir); err != nil {
		return fmt.Errorf("python3 with the modules venv and ensurepip is needed (package python3-venv of Debian): %w",
			err)
	}
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, requirements, 0o644); err != nil {
		return err
	}
	note("installing packages from PyPI")
	_, err := run(ctx, pythonOf(dir), "-m", "pip", "install",
		"--disable-pip-version-check", "--no-input", "--no-deps", "--quiet", "-r", list)
	return err
}

// run runs a command and returns its standard output. An error has the end of its standard error.
func run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		const kept = 2000
		text := strings.TrimSpace(stderr.String())
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, text[max(0, len(text)-kept):])
	}
	return string(out), nil
}

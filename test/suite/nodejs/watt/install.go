// Package watt installs the Watt application of the documentation (docs/examples/watt), and the
// Node.js that it needs.
package watt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/foresail/foresail/test/env/controlplane"
)

//go:embed node
var node embed.FS

// Installation is the application with all that it needs.
type Installation struct {
	// Node is the path of Node.js.
	Node string
	// Dir is the folder of the application. Watt is started in it.
	Dir string
}

// Arguments are those of Node.js that start Watt.
func (i Installation) Arguments() []string {
	return []string{filepath.Join(i.Dir, "node_modules", "wattpm", "bin", "cli.js"), "start", i.Dir}
}

// Install installs the application and its Node.js into <repository>/.cache/watt. The folder is
// named after its files, lock files included, so its content never changes. The first time takes
// half a minute and downloads 330 MB from npm's registry; after that it takes milliseconds and
// touches no network. It needs npm.
func Install(ctx context.Context, progress io.Writer) (Installation, error) {
	i, err := install(ctx, progress)
	if err != nil {
		return Installation{}, fmt.Errorf("install Watt: %w", err)
	}
	return i, nil
}

func install(ctx context.Context, progress io.Writer) (Installation, error) {
	root, err := controlplane.Root()
	if err != nil {
		return Installation{}, err
	}
	files, err := sources(root)
	if err != nil {
		return Installation{}, err
	}
	dir := filepath.Join(root, ".cache", "watt", key(files))
	if err := controlplane.MakeOnce(ctx, "Watt", dir, progress, func(ctx context.Context, note func(string)) error {
		return fill(ctx, dir, files, note)
	}); err != nil {
		return Installation{}, err
	}
	binaries, err := filepath.Glob(filepath.Join(dir, "node", "node_modules", "node-*", "bin", "node"))
	if err != nil {
		return Installation{}, err
	}
	if len(binaries) != 1 {
		return Installation{}, fmt.Errorf("npm has installed %d Node.js for this machine, one is needed: Linux on x64 or arm64", len(binaries))
	}
	return Installation{Node: binaries[0], Dir: filepath.Join(dir, "app")}, nil
}

// file is one to copy.
type file struct {
	name    string // within the installation
	content []byte
}

// sources returns the files of the application and of its Node.js, in order of their names.
func sources(root string) (files []file, err error) {
	for _, from := range []struct {
		files fs.FS
		dir   string
	}{{os.DirFS(filepath.Join(root, "docs", "examples", "watt")), "app"}, {node, ""}} {
		err := fs.WalkDir(from.files, ".", func(name string, entry fs.DirEntry, err error) error {
			switch extension := path.Ext(name); {
			case err != nil:
				return err
			case entry.Name() == "node_modules": // of someone who has run npm there
				return fs.SkipDir
			case entry.IsDir() || extension != ".json" && extension != ".js":
				return nil
			}
			content, err := fs.ReadFile(from.files, name)
			files = append(files, file{path.Join(from.dir, name), content})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

func key(files []file) string {
	hash := sha256.New()
	for _, f := range files {
		fmt.Fprintf(hash, "%s %d\n%s", f.name, len(f.content), f.content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

func fill(ctx context.Context, dir string, files []file, note func(string)) error {
	for _, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, f.content, 0o644); err != nil {
			return err
		}
	}
	note("installing Node.js from npm's registry")
	if err := npm(ctx, filepath.Join(dir, "node")); err != nil {
		return err
	}
	note("installing Watt from npm's registry")
	return npm(ctx, filepath.Join(dir, "app"))
}

// npm installs what the lock file of a folder names. No package's scripts are run.
func npm(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		const kept = 2000
		said := strings.TrimSpace(output.String())
		return fmt.Errorf("npm is needed (on Debian the package npm): %s: %w\n%s", cmd, err,
			said[max(0, len(said)-kept):])
	}
	return nil
}

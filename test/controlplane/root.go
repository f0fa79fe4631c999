package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// RootEnv names the environment variable that says where the repository is, for programs that were moved away from it.
const RootEnv = "FORESAIL_ROOT"

// componentsDir is where the module that pins the components lies, relative to the repository's root.
const componentsDir = "test/controlplane/components"

// Root returns the root folder of the repository: $FORESAIL_ROOT, or else the one that this source file was compiled
// from, or else the nearest one above the working directory.
func Root() (string, error) {
	if dir := os.Getenv(RootEnv); dir != "" {
		if !isRoot(dir) {
			return "", fmt.Errorf("%s=%q: no %s/go.mod in that folder; give the root of the repository", RootEnv, dir, componentsDir)
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

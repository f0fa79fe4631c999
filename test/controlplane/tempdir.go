package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	dirPrefix = "foresail-controlplane-"
	// lockName marks a folder that belongs to a running process: one whose lock is free was left behind by a process
	// that was killed.
	lockName = ".lock"
)

// newClusterDir makes a folder for one cluster within parent, or the system's folder for temporary files, and removes
// those that killed processes left there. The lock is held until it is closed; a folder that is kept has none.
func newClusterDir(parent string, keep bool) (dir string, lock *os.File, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent)
	// Born under another name, so that nobody's sweep finds it before it is locked.
	unborn, err := os.MkdirTemp(parent, "."+dirPrefix)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(parent, strings.TrimPrefix(filepath.Base(unborn), "."))
	if !keep {
		if lock, err = lockDir(unborn); err != nil {
			return "", nil, err
		}
	}
	if err := os.Rename(unborn, dir); err != nil {
		return "", nil, fmt.Errorf("cluster folder: %w", err)
	}
	return dir, lock, nil
}

func lockDir(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return lock, tryLock(lock)
}

// sweep removes the folders in parent whose lock nobody holds. What it cannot remove is somebody else's.
func sweep(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, dirPrefix+"*", lockName))
	for _, path := range locks {
		lock, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if tryLock(lock) == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = lock.Close()
	}
}

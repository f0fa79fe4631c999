package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// completeMark is the file that a folder made by MakeOnce has when it is whole.
const completeMark = ".complete"

// MakeOnce has a folder filled by one of however many processes ask for it at once; the others
// wait. A folder that was left half filled is emptied and filled again. What it does is told to
// progress, nil for nobody, under title, at least every ten seconds; fill tells through note what
// it is at.
func MakeOnce(ctx context.Context, title, dir string, progress io.Writer,
	fill func(ctx context.Context, note func(string)) error) error {
	if exists(filepath.Join(dir, completeMark)) {
		return nil
	}
	if progress == nil {
		progress = io.Discard
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	b := builder{Programs: Programs{Title: title}, progress: progress}
	if err := waitForLock(ctx, lock, b.newReporter(alreadyBuilding)); err != nil {
		return err
	}
	if exists(filepath.Join(dir, completeMark)) {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	report := b.newReporter(fmt.Sprintf("making %s, which is done once", dir))
	report.start()
	defer report.stop()
	if err := fill(ctx, report.note); err != nil {
		return err
	}
	return writeFileAtomic(filepath.Join(dir, completeMark), nil)
}

// errLocked means that another process holds the lock.
var errLocked = errors.New("locked by another process")

// tryLock takes the advisory lock of an open file. The kernel gives it back when the file is closed
// or the process ends, however it ends. It returns errLocked when another holds it.
func tryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}

package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// completeMark is the file that a folder made by MakeOnce has when it is whole.
const completeMark = ".complete"

// MakeOnce has a folder filled by one of however many processes ask for it at once; the others wait. A folder that was left
// half filled is emptied and filled again. What it does is told to progress, nil for nobody, under title, at least every
// ten seconds; fill tells through note what it is at.
func MakeOnce(ctx context.Context, title, dir string, progress io.Writer, fill func(ctx context.Context, note func(string)) error) error {
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
	if err := b.waitForLock(ctx, lock); err != nil {
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

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errLocked says that another process holds the lock.
var errLocked = errors.New("locked by another process")

// tryLock takes the advisory lock of an open file. The kernel gives it back when the file is closed or the process ends,
// however it ends. It returns errLocked when another holds it.
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

package controlplane

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts a child into a process group of its own, so that Ctrl-C reaches only the
// parent, which then ends its children in order; and has the kernel kill the child should the
// parent die without doing so.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitStopped waits until every thread of a child has stopped: on a busy machine some run on for a
// while after the signal.
func waitStopped(pid int) error {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED, nil); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

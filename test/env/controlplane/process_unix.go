//go:build unix && !linux

package controlplane

import "syscall"

// processAttributes puts a child into a process group of its own, so that Ctrl-C reaches only the
// parent, which then ends its children in order.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

func waitStopped(int) error { return nil }

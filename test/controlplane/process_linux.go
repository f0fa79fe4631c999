package controlplane

import "syscall"

// processAttributes puts a child into a process group of its own, so that Ctrl-C reaches only the parent, which then ends
// its children in order; and has the kernel kill the child should the parent die without doing so.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

package stack

import "syscall"

// dieWithParent has the kernel end a child when this process is killed, and keeps a terminal's Ctrl-C from it: this
// process ends its children itself, in order.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

//go:build !linux

package stack

import "syscall"

// dieWithParent keeps a terminal's Ctrl-C from a child: this process ends its children itself, in order.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

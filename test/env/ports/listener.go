package ports

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/prometheus/procfs"
)

// Explain adds the program that has an address in use, as /proc shows it, to the error of listening
// there. It returns other errors unchanged.
func Explain(err error, address string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	if holder := listener(address); holder != "" {
		return fmt.Errorf("%w: %s; stop that program", err, holder)
	}
	return fmt.Errorf("%w: another program listens there, or on that port of all addresses; stop that program", err)
}

// listenState is that of a listening socket in /proc/net/tcp.
const listenState = 10

// listener describes the program that keeps others from listening at an address, such as "python3
// (pid 4711) listens on 0.0.0.0:8080"; "" if it is not known.
func listener(address string) string {
	wanted, err := netip.ParseAddrPort(address)
	if err != nil {
		return ""
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return ""
	}
	v4, _ := fs.NetTCP()  //nolint:staticcheck // netlink would be a further module; what cannot be read has no sockets
	v6, _ := fs.NetTCP6() //nolint:staticcheck // as above
	for _, socket := range append(v4, v6...) {
		if socket.St != listenState || socket.LocalPort != uint64(wanted.Port()) {
			continue
		}
		local, ok := netip.AddrFromSlice(socket.LocalAddr)
		if !ok || local.Unmap() != wanted.Addr().Unmap() && !local.IsUnspecified() {
			continue
		}
		at := net.JoinHostPort(local.String(), strconv.FormatUint(socket.LocalPort, 10))
		return fmt.Sprintf("%s listens on %s", owner(fs, socket.Inode), at)
	}
	return ""
}

// owner names the process that has a socket open. Those of other users cannot be looked into.
func owner(fs procfs.FS, inode uint64) string {
	processes, _ := fs.AllProcs()
	socket := fmt.Sprintf("socket:[%d]", inode)
	for _, p := range processes {
		targets, err := p.FileDescriptorTargets()
		if err != nil {
			continue
		}
		for _, target := range targets {
			if target != socket {
				continue
			}
			name, err := p.Comm()
			if err != nil {
				name = "a program"
			}
			return fmt.Sprintf("%s (pid %d)", name, p.PID)
		}
	}
	return "a program of another user"
}

package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A slot is what makes a cluster's ports and pod addresses its own among all clusters on this
// machine: slot N has the ports from firstPort+N*portsPerSlot on and the pod addresses
// 127.N.0.0/16. It is held by listening on the first of the ports, so the kernel gives it back when
// the process ends, however it ends.
type slot struct {
	number int
	holder net.Listener
}

const (
	// firstSlot leaves 127.0.0.0/16 and 127.1.0.0/16 to other programs, lastSlot the broadcast address.
	firstSlot = 2
	lastSlot  = 250
	// The ports end at 23016, below the range of ports that Linux gives to outgoing connections.
	firstPort    = 21000
	portsPerSlot = 8
)

// The ports of a slot by their use; port 0 is the one that holds the slot.
const (
	_ = iota
	etcdClientPort
	etcdPeerPort
	apiServerPort
	controllerManagerPort
	schedulerPort
	kwokPort
	usedPorts
)

// takeSlot takes a free slot, at random so that a client of a cluster that is gone does not meet
// the next one.
func takeSlot() (*slot, error) {
	for _, i := range rand.Perm(lastSlot - firstSlot + 1) {
		s := &slot{number: firstSlot + i}
		if s.take() == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no free ports: each of the %d ranges of %d ports that clusters take, from %d to %d, has one in use; end clusters that are not needed",
		lastSlot-firstSlot+1, usedPorts, (&slot{number: firstSlot}).port(0), (&slot{number: lastSlot}).port(usedPorts-1))
}

func (s *slot) take() error {
	holder, err := net.Listen("tcp", s.address(0))
	if err != nil {
		return err
	}
	for use := 1; use < usedPorts; use++ {
		probe, err := net.Listen("tcp", s.address(use))
		if err != nil {
			return errors.Join(err, holder.Close())
		}
		_ = probe.Close()
	}
	s.holder = holder
	return nil
}

func (s *slot) release() { _ = s.holder.Close() }

func (s *slot) port(use int) int { return firstPort + s.number*portsPerSlot + use }

func (s *slot) address(use int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port(use)))
}

// podCIDR returns the pod addresses that are this slot's own.
func (s *slot) podCIDR() netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("127.%d.0.0/16", s.number))
}

const (
	dirPrefix = "foresail-controlplane-"
	// lockName marks a folder that belongs to a running process: one whose lock is free was left
	// behind by a process that was killed.
	lockName = ".lock"
)

// newClusterDir makes a folder for one cluster within parent, or the system's folder for temporary
// files, and removes those that killed processes left there. The lock is held until it is closed; a
// folder that is kept has none.
func newClusterDir(parent string, keep bool) (dir string, lock *os.File, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent)
	// Created under another name, so that no sweep finds it before it is locked.
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

// sweep removes the folders in parent whose lock no process holds. It ignores errors: other users
// may own such folders.
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

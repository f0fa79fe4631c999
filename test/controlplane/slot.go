package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
)

// A slot is what makes a cluster's ports and pod addresses its own among all clusters on this machine: slot N has the
// ports from firstPort+N*portsPerSlot on and the pod addresses 127.N.0.0/16. It is held by listening on the first of the
// ports, so the kernel gives it back when the process ends, however it ends.
type slot struct {
	number int
	holder net.Listener
}

const (
	// firstSlot leaves 127.0.0.0/16 and 127.1.0.0/16 to everybody else, lastSlot the broadcast address.
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

// takeSlot takes a free slot, at random so that a client of a cluster that is gone does not meet the next one.
func takeSlot() (*slot, error) {
	for _, i := range rand.Perm(lastSlot - firstSlot + 1) {
		s := &slot{number: firstSlot + i}
		if s.take() == nil {
			return s, nil
		}
	}
	return nil, errors.New("no free ports: every range of ports for clusters has one in use")
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

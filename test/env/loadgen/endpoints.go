package loadgen

import (
	"fmt"
	"net/netip"
)

// Endpoints are the addresses that requests may go to at the moment.
type Endpoints interface {
	// Endpoints returns addresses as IP:port, without repetition. It is called for every request,
	// so it must be cheap; the caller does not change the slice, nor may the callee once it has
	// been returned.
	Endpoints() []string
}

// Static is a list of endpoints that never changes.
type Static []string

// Endpoints returns the list.
func (s Static) Endpoints() []string { return s }

// checkLoopback returns an error unless the address is a loopback IP and a port. Host names are
// refused: what they stand for may change.
func checkLoopback(address string) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("endpoint %q: must be IP:port: %w", address, err)
	}
	if !parsed.Addr().IsLoopback() {
		return fmt.Errorf("endpoint %q: load is sent to loopback addresses only", address)
	}
	return nil
}

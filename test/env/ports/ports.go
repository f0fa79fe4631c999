// Package ports finds ports for programs that tests and demos start.
package ports

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports lie above those of control planes and below those that Linux gives to outgoing
// connections, so that no connection takes the port of a program while it is down. They go in
// pairs: the first of a pair is for a program, and listening on the second keeps other callers
// away.
const (
	firstPort = 23100
	lastPort  = 32699
)

// kept are the listeners that keep other callers away; one that nothing refers to would be closed.
var kept struct {
	sync.Mutex
	listeners []net.Listener
}

func keep(listener net.Listener) {
	kept.Lock()
	defer kept.Unlock()
	kept.listeners = append(kept.listeners, listener)
}

// Take returns a port of 127.0.0.1 that nothing listens on, at random, so that a client of a
// program that is gone does not meet the next one. No other caller on this machine gets it before
// this process has ended, however it ends.
func Take() (int, error) {
	pairs := (lastPort - firstPort + 1) / 2
	for _, i := range rand.Perm(pairs) {
		port := firstPort + 2*i
		keeper, err := net.Listen("tcp", Loopback(port+1))
		if err != nil {
			continue
		}
		if free(port) {
			keep(keeper)
			return port, nil
		}
		_ = keeper.Close() // nothing can fail: it has served nobody
	}
	return 0, errors.New("no free port: each from " + strconv.Itoa(firstPort) + " to " + strconv.Itoa(lastPort) + " is in use")
}

// TakeAddress returns the address of a port that Take returns.
func TakeAddress() (string, error) {
	port, err := Take()
	return Loopback(port), err
}

func free(port int) bool {
	listener, err := net.Listen("tcp", Loopback(port))
	return err == nil && listener.Close() == nil
}

// Loopback returns the address of a port of 127.0.0.1.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

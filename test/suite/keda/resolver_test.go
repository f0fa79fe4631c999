//go:build long

package keda_test

import (
	"errors"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// resolver answers DNS queries for a headless Service: with the addresses of the replicas that are ready.
type resolver struct {
	conn net.PacketConn

	mu        sync.Mutex
	addresses []netip.Addr
}

func newResolver() (*resolver, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	return &resolver{conn: conn}, err
}

func (r *resolver) set(addresses ...netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addresses = addresses
}

func (r *resolver) address() string { return r.conn.LocalAddr().String() }

// serve answers until close.
func (r *resolver) serve() error {
	buffer := make([]byte, 512)
	for {
		n, from, err := r.conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if answer, err := r.answer(buffer[:n]); err == nil { // whoever sends anything else gets none
			_, _ = r.conn.WriteTo(answer, from)
		}
	}
}

func (r *resolver) answer(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	if len(m.Questions) == 1 && m.Questions[0].Type == dnsmessage.TypeA {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, address := range r.addresses {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA,
					Class: dnsmessage.ClassINET, TTL: 1},
				Body: &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	return m.Pack()
}

func (r *resolver) close() error { return r.conn.Close() }

package remotewrite

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/golang/snappy"

	"github.com/foresail/foresail/internal/share"
)

// body is the body of a request, as sent and decompressed. It is reused.
type body struct {
	sent    bytes.Buffer
	decoded []byte
	content []byte          // decoded, or what was sent if it is not compressed
	lease   *share.Lease    // of the memory for bodies, of its sender
	ctx     context.Context //nolint:containedctx // of its request: waits for memory end with it
	held    int64           // bytes of it
}

// decompression makes the content of what was sent, within the limits.
type decompression func(*Source, *body) error

// keptBytes is the maximum size of a buffer that is kept for the next request. Few requests are larger.
const keptBytes = 4 << 20

// expansion is above the maximum compression of snappy: three bytes for 64.
const expansion = 22

func tooLarge(what string, limit int64) error {
	return &rejection{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes %s", limit, what)}
}

// errBusy makes senders try again.
var errBusy = &rejection{code: http.StatusServiceUnavailable, reason: "too much is being received at once"}

// read reads and decompresses a body within the limits. The caller frees it after its last use.
func (s *Source) read(r *http.Request, decompress decompression) (*body, error) {
	limit := s.options.MaxBodyBytes
	if r.ContentLength > limit {
		return nil, tooLarge("as sent", limit)
	}
	b := s.bodies.Get().(*body)
	b.lease, b.ctx = s.lease(r), r.Context()
	if err := s.fill(b, http.MaxBytesReader(nil, r.Body, limit), decompress); err != nil {
		s.free(b)
		return nil, err
	}
	s.telemetry.decodedBytes.Add(float64(len(b.content)))
	return b, nil
}

func (s *Source) fill(b *body, from io.Reader, decompress decompression) error {
	if err := s.receiveBody(b, from); err != nil {
		return err
	}
	if !b.lease.Fix() { // from here on nothing depends on how fast the sender is
		return errBusy
	}
	sent := b.sent.Len()
	if err := decompress(s, b); err != nil {
		return err
	}
	s.telemetry.sentBytes.Add(float64(sent))
	return nil
}

// receiveBody reads what is sent. Memory is held for what has arrived, not for what is announced: a sender that announces
// much and sends it slowly holds little.
func (s *Source) receiveBody(b *body, from io.Reader) error {
	for room := 0; ; {
		if b.sent.Len() == room {
			more := max(room, leastRoom)
			if err := s.hold(b, int64(more)); err != nil {
				return err
			}
			room += more
			b.sent.Grow(more)
		}
		_, err := io.CopyN(&b.sent, from, int64(room-b.sent.Len()))
		oversized := (*http.MaxBytesError)(nil)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &oversized):
			return tooLarge("as sent", s.options.MaxBodyBytes)
		case err != nil && b.lease.Recalled():
			return errBusy
		case err != nil:
			return &rejection{http.StatusBadRequest, fmt.Sprintf("the body ends early: %v", err)}
		}
	}
}

// lease returns the lease of a request. Senders share the memory by their addresses: nothing else is known of whose a body
// is before it is decoded. A body that arrives slowly is given up for a sender that holds less.
func (s *Source) lease(r *http.Request) *share.Lease {
	var recall func()
	if response, ok := r.Context().Value(responseKey{}).(http.ResponseWriter); ok {
		recall = func() { _ = http.NewResponseController(response).SetReadDeadline(time.Unix(1, 0)) }
	}
	return s.budget.Lease(senderOf(r), recall)
}

// responseKey is the key of a request's http.ResponseWriter in its context, by which reading the body can be ended.
type responseKey struct{}

// recallable lets the bodies of requests be given up while they are read.
func recallable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), responseKey{}, w)))
	})
}

// senderOf returns who sends a request: its address, or the network of an IPv6 address.
func senderOf(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	bits := at.Addr().BitLen()
	if at.Addr().Is6() && !at.Addr().Is4In6() {
		bits = 64
	}
	network, _ := at.Addr().Prefix(bits) // the address has as many bits
	return network.String()
}

// unsnappy decompresses snappy's block format.
func unsnappy(s *Source, b *body) error {
	n, err := b.decodedSize(s.options.MaxDecodedBytes)
	if err != nil {
		return err
	}
	if err := s.hold(b, int64(n)); err != nil {
		return err
	}
	return b.decompress(n)
}

// patience is how long a request waits for memory.
const patience = 5 * time.Second

// hold waits for bytes of the budget, which it has until the body is freed.
func (s *Source) hold(b *body, n int64) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if b.lease.Take(ctx, n) != nil {
		return errBusy
	}
	b.held += n
	s.telemetry.inFlight.Add(float64(n))
	return nil
}

// free gives everything back that the body holds.
func (s *Source) free(b *body) {
	s.telemetry.inFlight.Sub(float64(b.held))
	b.lease.End()
	b.reset()
	s.bodies.Put(b)
}

// decodedSize returns the decompressed size that the body announces. Nothing has been allocated for it yet.
func (b *body) decodedSize(limit int64) (int, error) {
	n, err := snappy.DecodedLen(b.sent.Bytes())
	switch {
	case err != nil:
		return 0, notSnappy(err)
	case int64(n) > limit:
		return 0, tooLarge("once decompressed", limit)
	case n > expansion*b.sent.Len():
		return 0, notSnappy(fmt.Errorf("%d bytes cannot hold the %d that they announce", b.sent.Len(), n))
	}
	return n, nil
}

func (b *body) decompress(n int) error {
	if cap(b.decoded) < n {
		b.decoded = make([]byte, n)
	}
	decoded, err := snappy.Decode(b.decoded[:n], b.sent.Bytes())
	if err != nil {
		return notSnappy(err)
	}
	b.decoded, b.content = decoded, decoded
	return nil
}

// unzip decompresses gzip, which does not say how much it is until it ends.
func unzip(s *Source, b *body) error {
	z, err := gzip.NewReader(&b.sent)
	if err != nil {
		return notGzip(err)
	}
	b.decoded = b.decoded[:0]
	for room := int64(0); ; {
		n := int64(len(b.decoded))
		if n == room {
			more := min(max(n, leastRoom), s.options.MaxDecodedBytes-n)
			if more == 0 {
				return atEnd(z, s.options.MaxDecodedBytes, b)
			}
			if err := s.hold(b, more); err != nil {
				return err
			}
			room += more
			b.decoded = slices.Grow(b.decoded, int(more))
		}
		read, err := z.Read(b.decoded[n:room])
		b.decoded = b.decoded[:n+int64(read)]
		if errors.Is(err, io.EOF) {
			b.content = b.decoded
			return nil
		}
		if err != nil {
			return notGzip(err)
		}
	}
}

// leastRoom is how many bytes are made room for before anything is known of the size.
const leastRoom = 16 << 10

// atEnd takes what has been decompressed if that is all.
func atEnd(z io.Reader, limit int64, b *body) error {
	var more [1]byte
	n, err := io.ReadFull(z, more[:])
	switch {
	case n > 0:
		return tooLarge("once decompressed", limit)
	case !errors.Is(err, io.EOF):
		return notGzip(err)
	}
	b.content = b.decoded
	return nil
}

// plain takes what is not compressed.
func plain(s *Source, b *body) error {
	if int64(b.sent.Len()) > s.options.MaxDecodedBytes {
		return tooLarge("", s.options.MaxDecodedBytes)
	}
	b.content = b.sent.Bytes()
	return nil
}

func notGzip(err error) error {
	return &rejection{http.StatusBadRequest, fmt.Sprintf("the body is not in gzip's format: %v", err)}
}

func notSnappy(err error) error {
	return &rejection{http.StatusBadRequest, fmt.Sprintf("the body is not in snappy's block format: %v", err)}
}

func (b *body) reset() {
	b.lease, b.ctx, b.held, b.content = nil, nil, 0, nil
	b.sent.Reset()
	if b.sent.Cap() > keptBytes {
		b.sent = bytes.Buffer{}
	}
	if cap(b.decoded) > keptBytes {
		b.decoded = nil
	}
}

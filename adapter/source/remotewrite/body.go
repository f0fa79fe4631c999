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
	"sync"
	"time"

	"github.com/golang/snappy"

	"github.com/foresail/foresail/internal/share"
)

const (
	// queuedBodies is the number of requests of one sender that may wait for memory, and patience
	// the time for which they do.
	queuedBodies, patience = 64, 5 * time.Second
	// minRoom is the number of bytes that are made room for before anything is known of the size.
	minRoom = 16 << 10
	// maxExpansion is above the maximum compression of snappy: three bytes for 64.
	maxExpansion = 22
	// maxPooledBody is the maximum size of a buffer that is kept for the next request, in bytes.
	// Few requests are larger.
	maxPooledBody = 4 << 20
)

// bodies reads the bodies of requests into memory that senders share.
type bodies struct {
	maxSent, maxDecoded int64 // bytes of one
	budget              *share.Pool
	telemetry           *telemetry
	pool                sync.Pool
}

func newBodies(o *Options, t *telemetry) *bodies {
	s := &bodies{
		maxSent: o.MaxBodyBytes, maxDecoded: o.MaxDecodedBytes,
		budget: share.NewPool(o.MaxInFlightBytes, queuedBodies), telemetry: t,
	}
	s.pool.New = func() any { return &body{owner: s} }
	return s
}

// read reads and decompresses a body within the limits. The caller frees it after its last use.
func (s *bodies) read(r *http.Request, decompress decompression) (*body, error) {
	if r.ContentLength > s.maxSent {
		return nil, tooLarge("as sent", s.maxSent)
	}
	b := s.pool.Get().(*body)
	b.lease, b.ctx = s.lease(r), r.Context()
	if err := b.fill(http.MaxBytesReader(nil, r.Body, s.maxSent), decompress); err != nil {
		b.free()
		return nil, err
	}
	return b, nil
}

// lease returns the lease of a request. Senders share the memory by their addresses, since the
// tenant of a body is unknown until it is decoded. A body that arrives slowly is given up for a
// sender that holds less.
func (s *bodies) lease(r *http.Request) *share.Lease {
	var recall func()
	if response, ok := r.Context().Value(responseKey{}).(http.ResponseWriter); ok {
		recall = func() { _ = http.NewResponseController(response).SetReadDeadline(time.Unix(1, 0)) }
	}
	return s.budget.Lease(senderOf(r), recall)
}

// responseKey is the key of a request's http.ResponseWriter in its context, by which reading the
// body can be ended.
type responseKey struct{}

// recallable lets the bodies of requests be given up while they are read.
func recallable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), responseKey{}, w)))
	})
}

// senderOf returns the sender of a request: its address, or the network of an IPv6 address.
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

// body is the body of a request, as sent and decompressed. It is reused.
type body struct {
	owner   *bodies
	sent    bytes.Buffer
	decoded []byte
	content []byte          // decoded, or sent if it is not compressed
	lease   *share.Lease    // of the memory for bodies, of its sender
	ctx     context.Context //nolint:containedctx // of its request: waits for memory end with it
	held    int64           // bytes of it
}

// fill reads the body and decompresses it.
func (b *body) fill(from io.Reader, decompress decompression) error {
	if err := b.receive(from); err != nil {
		return err
	}
	if !b.lease.Fix() { // from here on nothing depends on how fast the sender is
		return errBusy
	}
	return decompress(b, b.owner.maxDecoded)
}

// receive reads the body as sent. Memory is held for the bytes that have arrived, not for those that are
// announced: a sender that announces much and sends it slowly holds little.
func (b *body) receive(from io.Reader) error {
	for room := 0; ; {
		if b.sent.Len() == room {
			more := max(room, minRoom)
			if err := b.hold(int64(more)); err != nil {
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
			return tooLarge("as sent", b.owner.maxSent)
		case err != nil && b.lease.Recalled():
			return errBusy
		case err != nil:
			return &rejection{http.StatusBadRequest, fmt.Sprintf("the body ends early: %v", err)}
		}
	}
}

// hold waits for bytes of the budget, which the body keeps until it is freed.
func (b *body) hold(n int64) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if b.lease.Take(ctx, n) != nil {
		return errBusy
	}
	b.held += n
	b.owner.telemetry.inFlight.Add(float64(n))
	return nil
}

// free returns everything that the body holds.
func (b *body) free() {
	b.owner.telemetry.inFlight.Sub(float64(b.held))
	b.lease.End()
	b.reset()
	b.owner.pool.Put(b)
}

func (b *body) reset() {
	b.lease, b.ctx, b.held, b.content = nil, nil, 0, nil
	b.sent.Reset()
	if b.sent.Cap() > maxPooledBody {
		b.sent = bytes.Buffer{}
	}
	if cap(b.decoded) > maxPooledBody {
		b.decoded = nil
	}
}

// decompression makes the content of a body, of at most limit bytes.
type decompression func(b *body, limit int64) error

// unsnappy decompresses snappy's block format.
func unsnappy(b *body, limit int64) error {
	n, err := snappySize(b.sent.Bytes(), limit)
	if err != nil {
		return err
	}
	if err := b.hold(int64(n)); err != nil {
		return err
	}
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

// snappySize returns the decompressed size that a body announces. Nothing has been allocated for it yet.
func snappySize(sent []byte, limit int64) (int, error) {
	n, err := snappy.DecodedLen(sent)
	switch {
	case err != nil:
		return 0, notSnappy(err)
	case int64(n) > limit:
		return 0, tooLarge("once decompressed", limit)
	case n > maxExpansion*len(sent):
		return 0, notSnappy(fmt.Errorf("%d bytes cannot hold the %d that they announce", len(sent), n))
	}
	return n, nil
}

// unzip decompresses gzip, which does not announce its size.
func unzip(b *body, limit int64) error {
	z, err := gzip.NewReader(&b.sent)
	if err != nil {
		return notGzip(err)
	}
	b.decoded = b.decoded[:0]
	for room := int64(0); ; {
		n := int64(len(b.decoded))
		if n == room {
			more := min(max(n, minRoom), limit-n)
			if more == 0 {
				b.content = b.decoded
				return atEnd(z, limit)
			}
			if err := b.hold(more); err != nil {
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

// atEnd returns an error unless everything has been decompressed.
func atEnd(z io.Reader, limit int64) error {
	var more [1]byte
	n, err := io.ReadFull(z, more[:])
	switch {
	case n > 0:
		return tooLarge("once decompressed", limit)
	case !errors.Is(err, io.EOF):
		return notGzip(err)
	}
	return nil
}

// plain uses a body that is not compressed as it is.
func plain(b *body, limit int64) error {
	if int64(b.sent.Len()) > limit {
		return tooLarge("", limit)
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

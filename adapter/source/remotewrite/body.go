package remotewrite

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/golang/snappy"
)

// body is the body of a request, as sent and decompressed. It is reused.
type body struct {
	sent    bytes.Buffer
	decoded []byte
	content []byte // decoded, or what was sent if it is not compressed
	held    int64  // of the budget
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
	size := r.ContentLength
	if size < 0 {
		size = limit
	}
	b := s.bodies.Get().(*body)
	if err := s.fill(b, size, http.MaxBytesReader(nil, r.Body, limit), decompress); err != nil {
		s.free(b)
		return nil, err
	}
	s.telemetry.decodedBytes.Add(float64(len(b.content)))
	return b, nil
}

func (s *Source) fill(b *body, size int64, from io.Reader, decompress decompression) error {
	if err := s.hold(b, size); err != nil {
		return err
	}
	if err := b.receive(from, s.options.MaxBodyBytes); err != nil {
		return err
	}
	sent := b.sent.Len()
	if err := decompress(s, b); err != nil {
		return err
	}
	s.telemetry.sentBytes.Add(float64(sent))
	return nil
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

// hold acquires bytes of the budget until the body is freed.
func (s *Source) hold(b *body, n int64) error {
	if err := s.acquire(n); err != nil {
		return err
	}
	b.held += n
	return nil
}

// free releases what read acquired.
func (s *Source) free(b *body) {
	s.release(b.held)
	b.reset()
	s.bodies.Put(b)
}

// acquire acquires bytes of the budget.
func (s *Source) acquire(n int64) error {
	if !s.budget.TryAcquire(n) {
		return errBusy
	}
	s.telemetry.inFlight.Add(float64(n))
	return nil
}

// release returns bytes to the budget.
func (s *Source) release(n int64) {
	s.telemetry.inFlight.Sub(float64(n))
	s.budget.Release(n)
}

func (b *body) receive(from io.Reader, limit int64) error {
	_, err := b.sent.ReadFrom(from)
	if oversized := (*http.MaxBytesError)(nil); errors.As(err, &oversized) {
		return tooLarge("as sent", limit)
	}
	if err != nil {
		return &rejection{http.StatusBadRequest, fmt.Sprintf("the body ends early: %v", err)}
	}
	return nil
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
	b.held, b.content = 0, nil
	b.sent.Reset()
	if b.sent.Cap() > keptBytes {
		b.sent = bytes.Buffer{}
	}
	if cap(b.decoded) > keptBytes {
		b.decoded = nil
	}
}

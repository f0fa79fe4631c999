package remotewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/golang/snappy"
)

// body is the body of a request, as sent and decompressed. It is reused.
type body struct {
	sent    bytes.Buffer
	decoded []byte
	held    int64 // of the budget
}

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
func (s *Source) read(r *http.Request) (*body, error) {
	limit := s.options.MaxBodyBytes
	if r.ContentLength > limit {
		return nil, tooLarge("as sent", limit)
	}
	size := r.ContentLength
	if size < 0 {
		size = limit
	}
	if err := s.acquire(size); err != nil {
		return nil, err
	}
	b := s.bodies.Get().(*body)
	b.held = size
	if err := s.fill(b, http.MaxBytesReader(nil, r.Body, limit)); err != nil {
		s.free(b)
		return nil, err
	}
	s.telemetry.sentBytes.Add(float64(b.sent.Len()))
	s.telemetry.decodedBytes.Add(float64(len(b.decoded)))
	return b, nil
}

func (s *Source) fill(b *body, from io.Reader) error {
	if err := b.receive(from, s.options.MaxBodyBytes); err != nil {
		return err
	}
	n, err := b.decodedSize(s.options.MaxDecodedBytes)
	if err != nil {
		return err
	}
	if err := s.acquire(int64(n)); err != nil {
		return err
	}
	b.held += int64(n)
	return b.decompress(n)
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
	b.decoded = decoded
	return nil
}

func notSnappy(err error) error {
	return &rejection{http.StatusBadRequest, fmt.Sprintf("the body is not in snappy's block format: %v", err)}
}

func (b *body) reset() {
	b.held = 0
	b.sent.Reset()
	if b.sent.Cap() > keptBytes {
		b.sent = bytes.Buffer{}
	}
	if cap(b.decoded) > keptBytes {
		b.decoded = nil
	}
}

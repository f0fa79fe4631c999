package remotewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/golang/snappy"
)

// body is a request's body, as sent and decompressed. It is used again.
type body struct {
	sent    bytes.Buffer
	decoded []byte
	held    int64 // of the budget
}

// keptBytes is how large a buffer may be that is kept for the next request. Few requests are larger.
const keptBytes = 4 << 20

// expansion is more than snappy can compress: at best three bytes stand for 64.
const expansion = 22

func tooLarge(what string, limit int64) error {
	return &refusal{code: http.StatusRequestEntityTooLarge, reason: fmt.Sprintf("the body is larger than %d bytes %s", limit, what)}
}

// errBusy is for what is worth another try.
var errBusy = &refusal{code: http.StatusServiceUnavailable, reason: "too much is being received at once"}

// read reads a body within the limits and decompresses it. free must be called after the last use of it.
func (s *Source) read(w http.ResponseWriter, r *http.Request) (*body, error) {
	limit := s.options.MaxBodyBytes
	if r.ContentLength > limit {
		return nil, tooLarge("as sent", limit)
	}
	size := r.ContentLength
	if size < 0 {
		size = limit
	}
	if err := s.hold(size); err != nil {
		return nil, err
	}
	b := s.bodies.Get().(*body)
	b.held = size
	if err := s.fill(b, http.MaxBytesReader(w, r.Body, limit)); err != nil {
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
	if err := s.hold(int64(n)); err != nil {
		return err
	}
	b.held += int64(n)
	return b.decompress(n)
}

// free gives back what read took.
func (s *Source) free(b *body) {
	s.let(b.held)
	b.reset()
	s.bodies.Put(b)
}

// hold takes bytes from the budget.
func (s *Source) hold(n int64) error {
	if !s.budget.TryAcquire(n) {
		return errBusy
	}
	s.telemetry.inFlight.Add(float64(n))
	return nil
}

// let gives bytes back.
func (s *Source) let(n int64) {
	s.telemetry.inFlight.Sub(float64(n))
	s.budget.Release(n)
}

func (b *body) receive(from io.Reader, limit int64) error {
	_, err := b.sent.ReadFrom(from)
	if tooMuch := (*http.MaxBytesError)(nil); errors.As(err, &tooMuch) {
		return tooLarge("as sent", limit)
	}
	if err != nil {
		return &refusal{code: http.StatusBadRequest, reason: fmt.Sprintf("the body ends early: %v", err)}
	}
	return nil
}

// decodedSize returns how large the body says that it is once decompressed. Nothing has been allocated for that yet.
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
	return &refusal{code: http.StatusBadRequest, reason: fmt.Sprintf("the body is not in snappy's block format: %v", err)}
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

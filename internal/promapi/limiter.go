package promapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// limiter ends answers that are too large with an error while they are read. A short text can hold many series, such as
// {},{},{}, which take much more memory than the text, so opening braces are limited too. Decoding an answer takes up to
// twenty times its size, so large answers wait for each other.
type limiter struct {
	next          http.RoundTripper
	bytes, braces int64
	large         chan struct{} // slots of large answers, of all servers
}

const bracesPerSeries = 16

// LargeBytes is the size from which an answer is large, LargeAtOnce the number of large ones read at the same time.
const (
	LargeBytes  = 4 << 20
	LargeAtOnce = 1
)

func newLimiter(next http.RoundTripper, o *Options, large chan struct{}) *limiter {
	return &limiter{next: next, bytes: o.MaxBytes, braces: bracesPerSeries * (int64(o.MaxSeries) + 1), large: large}
}

// RoundTrip implements http.RoundTripper.
func (l *limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.ContentLength > l.bytes {
		_ = response.Body.Close()
		return nil, tooLong(l)
	}
	ctx := r.Context() // ends when the answer has been decoded
	response.Body = &limitedBody{ReadCloser: response.Body, limiter: l, waitForSlot: func() error { return l.waitForSlot(ctx) }}
	return response, nil
}

// waitForSlot waits for a slot of large answers, which it holds until the query ends.
func (l *limiter) waitForSlot(ctx context.Context) error {
	select {
	case l.large <- struct{}{}:
		context.AfterFunc(ctx, func() { <-l.large })
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CloseIdleConnections lets http.Client close the connections of the next transport.
func (l *limiter) CloseIdleConnections() {
	if next, ok := l.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

type limitedBody struct {
	io.ReadCloser
	limiter       *limiter
	waitForSlot   func() error
	bytes, braces int64 // so far
	large         bool  // it has a slot
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes += int64(n)
	b.braces += int64(bytes.Count(p[:n], []byte{'{'}))
	if b.bytes > b.limiter.bytes {
		return 0, tooLong(b.limiter)
	}
	if b.braces > b.limiter.braces {
		return 0, &sizeError{fmt.Sprintf("the answer has more than %d objects", b.limiter.braces)}
	}
	if b.bytes > LargeBytes && !b.large {
		if err := b.waitForSlot(); err != nil {
			return 0, err
		}
		b.large = true
	}
	return n, err
}

// sizeError is an answer that is too large.
type sizeError struct{ what string }

func tooLong(l *limiter) *sizeError {
	return &sizeError{fmt.Sprintf("the answer is longer than %d bytes", l.bytes)}
}

func (e *sizeError) Error() string { return e.what + "; the query must select less" }

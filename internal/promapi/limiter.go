package promapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// limiter ends answers that are too long with an error, as they are read. A short text can be many series, such as
// {},{},{}, each of which takes much more memory than text; so their number is limited too: by that of opening braces,
// of which a series has two, and more if its labels have some.
//
// The memory that an answer takes as it is decoded is up to twenty times its length. So that many long answers at once
// do not take all there is, those that turn out to be large wait for each other.
type limiter struct {
	next          http.RoundTripper
	bytes, braces int64
	large         chan struct{} // slots of large answers, of all servers
}

const bracesPerSeries = 16

// The answers that are large, and how many of them are read at once.
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
	response.Body = &limitedBody{ReadCloser: response.Body, limiter: l, query: r.Context()}
	return response, nil
}

// CloseIdleConnections has http.Client do so for what is below.
func (l *limiter) CloseIdleConnections() {
	if next, ok := l.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

type limitedBody struct {
	io.ReadCloser
	limiter       *limiter
	query         context.Context // which ends when the answer has been decoded
	bytes, braces int64           // so far
	large         bool            // it has a slot
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
		if !b.enter() {
			return 0, b.query.Err()
		}
	}
	return n, err
}

// enter waits for a slot, which it has until the query ends; false: the query has ended.
func (b *limitedBody) enter() bool {
	select {
	case b.limiter.large <- struct{}{}:
		b.large = true
		context.AfterFunc(b.query, func() { <-b.limiter.large })
	case <-b.query.Done():
	}
	return b.large
}

// sizeError is an answer that is too large.
type sizeError struct{ what string }

func tooLong(l *limiter) *sizeError {
	return &sizeError{fmt.Sprintf("the answer is longer than %d bytes", l.bytes)}
}

func (e *sizeError) Error() string { return e.what + "; the query must select less" }

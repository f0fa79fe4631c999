package promapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/foresail/foresail/internal/share"
)

// limiter ends answers that are too large with an error while they are read, and has all answers
// share a budget of memory. A short text can hold many series, such as {},{},{}, which take much
// more memory than the text, so opening braces are limited too.
type limiter struct {
	next          http.RoundTripper
	bytes, braces int64
	budget        *share.Pool // of memory, of all servers
}

const bracesPerSeries = 16

func newLimiter(next http.RoundTripper, o *Options, b *share.Pool) *limiter {
	return &limiter{next: next, bytes: o.MaxBytes, braces: bracesPerSeries * (int64(o.MaxSeries) + 1), budget: b}
}

// asking is a question while it is asked, in the context of its requests.
type asking struct {
	tenant string
	leases []*share.Lease // of its answer, and of redirects to it
}

type askingKey struct{}

func (a *asking) end() {
	for _, l := range a.leases {
		l.End()
	}
}

// RoundTrip implements http.RoundTripper.
func (l *limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	of, ok := r.Context().Value(askingKey{}).(*asking)
	if !ok {
		of = &asking{} // a request that is not of a Question: its memory counts until the body is closed
	}
	ctx, giveUp := context.WithCancel(r.Context())
	response, err := l.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		giveUp()
		return nil, err
	}
	if response.ContentLength > l.bytes {
		giveUp()
		_ = response.Body.Close()
		return nil, tooLong(l)
	}
	lease := l.budget.Lease(of.tenant, giveUp)
	of.leases = append(of.leases, lease)
	response.Body = &limitedBody{ReadCloser: response.Body, ctx: ctx, giveUp: giveUp, limiter: l, lease: lease,
		alone: !ok}
	return response, nil
}

// CloseIdleConnections lets http.Client close the connections of the next transport.
func (l *limiter) CloseIdleConnections() {
	if next, ok := l.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

type limitedBody struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // of the request: a body has no other way to learn that it ended
	giveUp  context.CancelFunc
	limiter *limiter
	lease   *share.Lease
	alone   bool // the lease ends with the body

	// So far:
	bytes, braces int64
	cost, taken   int64 // of memory
}

// Memory that an answer takes, by what it consists of: its text is copied while it grows, and again
// while it is decoded. TestMemoryOfAnAnswerIsBounded holds the sum to what is measured.
const (
	costPerByte    = 6
	costPerElement = 12 // of an array or an object, after each of which there is a comma
	costPerString  = 32 // more, where that is a string
	costPerName    = 48 // of a label or a field, after each of which there is a colon
	costPerArray   = 16
	costChunk      = 64 << 10 // that is taken of the budget at once
)

// costOf returns the memory that a part of an answer takes.
func costOf(text []byte) int64 {
	count := func(what string) int64 { return int64(bytes.Count(text, []byte(what))) }
	return costPerByte*int64(len(text)) + costPerElement*count(",") + costPerString*count(`",`) + costPerName*count(":") + costPerArray*count("[")
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes += int64(n)
	b.braces += int64(bytes.Count(p[:n], []byte{'{'}))
	b.cost += costOf(p[:n])
	if b.bytes > b.limiter.bytes {
		return 0, tooLong(b.limiter)
	}
	if b.braces > b.limiter.braces {
		return 0, &sizeError{fmt.Sprintf("the answer has more than %d objects", b.limiter.braces)}
	}
	if lacking := b.cost - b.taken; lacking > 0 {
		lacking = (lacking + costChunk - 1) / costChunk * costChunk
		if err := b.limiter.explain(b.lease.Take(b.ctx, lacking)); err != nil {
			return 0, err
		}
		b.taken += lacking
	}
	if err != nil && !b.lease.Fix() { // a complete answer is given back as soon as it is decoded
		return 0, b.limiter.explain(share.ErrRecalled)
	}
	return n, err
}

// explain returns the error of an answer for which memory could not be taken.
func (l *limiter) explain(err error) error {
	total := l.budget.Total() >> 20
	switch {
	case errors.Is(err, share.ErrRecalled):
		return &sizeError{fmt.Sprintf("the answers for the namespace take more than its share of the %d MiB of memory for answers", total)}
	case errors.Is(err, share.ErrTooMuch):
		return &sizeError{fmt.Sprintf("the answer would take more than the %d MiB of memory for all answers", total)}
	}
	return err
}

// Close implements io.Closer.
func (b *limitedBody) Close() error {
	if b.alone {
		b.lease.End()
		b.giveUp()
	}
	return b.ReadCloser.Close()
}

// sizeError is an answer that is too large.
type sizeError struct{ what string }

func tooLong(l *limiter) *sizeError {
	return &sizeError{fmt.Sprintf("the answer is longer than %d bytes", l.bytes)}
}

func (e *sizeError) Error() string { return e.what + "; the query must select less" }

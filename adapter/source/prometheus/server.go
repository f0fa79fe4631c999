package prometheus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

const (
	// connections names ours in the metrics of the library that dials.
	connections = "prometheus-source"
	// idleConnection is how long a connection is kept that is not used.
	idleConnection = time.Minute
	// maxRedirects is how often a server may send a query on to another path of its own.
	maxRedirects = 3
)

// server is one address that is asked.
type server struct {
	client *http.Client
	api    v1.API
	slots  chan struct{} // of queries under way
	groups int           // that ask it; the source's lock guards it
}

// connect prepares to ask a server. The caller holds the lock.
func (s *Source) connect(address string) (*server, error) {
	client, err := config.NewClientFromConfig(s.options.Servers.configOf(address), connections,
		config.WithUserAgent(s.options.UserAgent), config.WithIdleConnTimeout(idleConnection))
	if err != nil {
		return nil, fmt.Errorf("address: %q: %w", address, err)
	}
	if s.transport != nil {
		client.Transport = s.transport
	}
	client.Transport = newLimiter(client.Transport, &s.options, s.large)
	if client.CheckRedirect == nil {
		client.CheckRedirect = checkRedirect
	}
	c, err := api.NewClient(api.Config{Address: address, Client: client})
	if err != nil {
		return nil, fmt.Errorf("address: %q: %w", address, err)
	}
	return &server{client: client, api: v1.NewAPI(c), slots: make(chan struct{}, s.options.Concurrency)}, nil
}

// checkRedirect follows redirects within the server that was to be asked only. Another one would be asked although
// nobody named it, and a subdomain, another port or plain HTTP would even be given the credentials.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return &redirectError{to: r.URL.Scheme + "://" + r.URL.Host}
	}
	if len(via) > maxRedirects {
		return errors.New("it redirects again and again")
	}
	return nil
}

type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return fmt.Sprintf("it redirects to %.100q, which is not followed: must be the server's own address", e.to)
}

// enter waits for a slot; false: ctx has ended.
func (v *server) enter(ctx context.Context) bool {
	select {
	case v.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (v *server) exit() { <-v.slots }

// rangeVector asks for the samples of a selector over a span that ends now, as the server's clock has it.
//
// The range stands on a line of its own, so that a comment at the end of the selector cannot hide it.
func (v *server) rangeVector(ctx context.Context, selector string, span time.Duration, options ...v1.Option) (model.Matrix, v1.Warnings, error) {
	query := fmt.Sprintf("%s\n[%ds]", selector, wholeSeconds(span)/time.Second)
	value, warnings, err := v.api.Query(ctx, query, time.Time{}, options...)
	if err != nil {
		return nil, nil, err
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, nil, &typeError{value.Type()}
	}
	return matrix, warnings, nil
}

// wholeSeconds rounds up, since Prometheus takes no fractions.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// typeError is an answer that is no range vector.
type typeError struct{ got model.ValueType }

func (e *typeError) Error() string { return fmt.Sprintf("the answer is a %s", e.got) }

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

const (
	bracesPerSeries = 16
	largeBytes      = 4 << 20 // from which on an answer is large
	largeAtOnce     = 1
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
	if b.bytes > largeBytes && !b.large {
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

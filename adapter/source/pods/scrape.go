package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/common/expfmt"
)

const (
	// accept prefers the Prometheus text format, which needs no conversion, and accepts OpenMetrics.
	accept = "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1"

	dialTimeout   = 2 * time.Second // a connection attempt outlives its scrape by no more
	idleTimeout   = 90 * time.Second
	maxIdle       = 16384    // connections kept between scrapes, each a file descriptor and about 20 KB; others are opened each time
	maxHeader     = 64 << 10 // bytes
	maxRedirects  = 3
	maxErrorDrain = 4 << 10 // bytes of an error's body that are read to use the connection again
)

// newTransport returns a transport for many hosts with one request each and answers of some KB. It requests no
// compression: inside a cluster that costs more CPU than the bytes it saves.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: -1} // a request each interval shows what is alive
	return &http.Transport{
		DialContext:            dialer.DialContext,
		DisableCompression:     true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    2, // a pod may have two endpoints
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize:        1 << 10,
	}
}

// redirectError is why a redirect is not followed.
type redirectError string

func (e redirectError) Error() string { return string(e) }

func newClient(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host {
			return redirectError(fmt.Sprintf("it redirects to %s://%s: redirects to other addresses are not followed", r.URL.Scheme, r.URL.Host))
		}
		if len(via) > maxRedirects {
			return redirectError(fmt.Sprintf("it redirects more than %d times", maxRedirects))
		}
		return nil
	}}
}

// failure is why an endpoint could not be read.
type failure struct {
	result result
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// scrape reads an endpoint once for all its readers, and returns whether it was cancelled.
func (s *Source) scrape(ctx context.Context, e *endpoint) (cancelled bool) {
	s.telemetry.inFlight.Inc()
	defer s.telemetry.inFlight.Dec()
	began := time.Now()
	p := s.pages.Get().(*page)
	defer s.pages.Put(p)
	readers := e.readers.Load()
	at, f := s.read(ctx, e, readers.desired, p)
	took := time.Since(began)
	s.telemetry.duration.Observe(took.Seconds())
	if f == nil {
		s.telemetry.scrapes[resultSuccess].Inc()
		s.settle(e, false, took)
		s.deliver(readers, p, at)
		return false
	}
	s.telemetry.scrapes[f.result].Inc()
	if f.result == resultCancelled {
		return true
	}
	s.settle(e, true, took)
	for _, r := range readers.all {
		r.fail(f)
	}
	return false
}

func (s *Source) deliver(readers *readers, p *page, at time.Time) {
	for _, r := range readers.all {
		if r.deliver(p, at) != nil {
			s.telemetry.unselected.Inc()
		}
	}
}

// read requests the page of an endpoint and returns when the answer began to arrive.
func (s *Source) read(scrape context.Context, e *endpoint, w desired, p *page) (at time.Time, f *failure) {
	if e.problem != nil {
		return at, &failure{resultAddress, e.problem}
	}
	timeout := s.options.Timeout
	if timeout == 0 {
		timeout = e.key.interval
	}
	ctx, cancel := context.WithTimeout(scrape, timeout)
	defer cancel()
	response, err := s.client.Do(e.request.WithContext(ctx))
	at = time.Now()
	if err == nil {
		defer response.Body.Close()
		f = s.readAnswer(response, w, p)
	} else {
		f = requestFailure(err)
	}
	switch {
	case f == nil:
		return at, nil
	case scrape.Err() != nil:
		return at, &failure{resultCancelled, scrape.Err()}
	case ctx.Err() != nil:
		return at, &failure{resultTimeout, fmt.Errorf("%s: no complete answer within %s", e.key.url, timeout)}
	default:
		return at, &failure{f.result, fmt.Errorf("%s: %w", e.key.url, f.err)}
	}
}

// requestFailure classifies why there was no answer.
func requestFailure(err error) *failure {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // it names the URL, as read does
	}
	if _, ok := errors.AsType[redirectError](err); ok {
		return &failure{resultStatus, err}
	}
	return &failure{resultConnection, err}
}

// readAnswer reads the page of an answer.
func (s *Source) readAnswer(r *http.Response, w desired, p *page) *failure {
	if r.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, r.Body, maxErrorDrain)
		return &failure{resultStatus, fmt.Errorf("it answers %s: must be 200 OK", r.Status)}
	}
	openMetrics, err := formatOf(r.Header)
	if err != nil {
		return &failure{resultContent, err}
	}
	body := &limitedReader{r: r.Body, limit: s.options.MaxBodyBytes}
	err = p.read(body, w, openMetrics)
	s.telemetry.bytes.Add(float64(body.n))
	switch {
	case body.broken:
		return &failure{resultConnection, err}
	case err != nil:
		return &failure{resultContent, err}
	}
	return nil
}

// formatOf returns whether an answer is OpenMetrics; otherwise it is the Prometheus text format.
func formatOf(h http.Header) (openMetrics bool, err error) {
	if encoding := h.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return false, fmt.Errorf("its Content-Encoding is %.40q: must be none", encoding)
	}
	content := h.Get("Content-Type")
	if content == "" {
		return false, nil
	}
	media, _, err := mime.ParseMediaType(content)
	switch {
	case err == nil && media == "text/plain":
		return false, nil
	case err == nil && media == expfmt.OpenMetricsType:
		return true, nil
	default:
		return false, fmt.Errorf("its Content-Type is %.80q: must be text/plain or %s", content, expfmt.OpenMetricsType)
	}
}

// limitedReader counts bytes and fails after a limit.
type limitedReader struct {
	r        io.Reader
	n, limit int64
	broken   bool // r has failed
}

// Read implements io.Reader.
func (l *limitedReader) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	l.n += int64(n)
	if l.n > l.limit {
		return n, fmt.Errorf("its body is larger than %d bytes", l.limit)
	}
	l.broken = err != nil && !errors.Is(err, io.EOF)
	return n, err
}

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
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

const (
	// accept prefers the Prometheus text format, which needs no conversion, and accepts OpenMetrics.
	accept = "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1"

	dialTimeout = 2 * time.Second // a connection attempt outlives its scrape by no more
	idleTimeout = 90 * time.Second
	// maxIdle is the number of connections kept between scrapes, each a file descriptor and about 20 KB.
	maxIdle       = 16384
	maxHeader     = 64 << 10 // bytes
	maxRedirects  = 3
	maxErrorDrain = 4 << 10 // bytes of an error's body that are read to use the connection again

	shortAnswer = 64 << 10 // bytes that are parsed as soon as they are there
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
			return redirectError(fmt.Sprintf("it redirects to %s://%s: redirects to other addresses are not followed",
				r.URL.Scheme, r.URL.Host))
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
	readers := e.readers.get()
	p, at, f := s.fetchPage(ctx, e, readers.selected)
	took := time.Since(began)
	if f == nil {
		s.telemetry.duration[resultSuccess].Observe(took.Seconds())
		s.recordOutcome(e, false, took)
		s.deliver(e, readers, p, at, at.Sub(began))
		s.pages.Put(p)
		return false
	}
	s.telemetry.duration[f.result].Observe(took.Seconds())
	if f.result == resultCancelled {
		return true
	}
	s.recordOutcome(e, true, took)
	for _, r := range readers.all {
		r.fail(f)
	}
	return false
}

// deliver gives each reader what its selection found on a page that began to arrive at a time, so long after it was
// requested.
func (s *Source) deliver(e *endpoint, readers *readerSet, p *page, at time.Time, late time.Duration) {
	samples := make([]pipeline.Sample, len(readers.selected.selections))
	problems := make([]error, len(samples))
	for i := range samples {
		var err error
		if samples[i], err = p.pick(i, at); err != nil {
			problems[i] = fmt.Errorf("%s: %w", e.key.url, err)
		}
	}
	slowed := e.slowed.Load()
	for i, r := range readers.all {
		r.reportSlowness(slowed)
		choice := readers.choices[i]
		if err := problems[choice]; err != nil {
			r.fail(err)
			continue
		}
		r.deliver(samples[choice], at, late)
	}
}

// fetchPage requests the page of an endpoint, which is to be put back, and returns when the answer
// began to arrive. Parsing is part of it, and of its timeout.
func (s *Source) fetchPage(scrape context.Context, e *endpoint,
	selected *selectionSet) (p *page, at time.Time, f *failure) {
	if e.problem != nil {
		return nil, at, &failure{resultAddress, e.problem}
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
		p, f = s.readAnswer(ctx, e, response, selected)
	} else {
		f = requestFailure(err)
	}
	switch {
	case f == nil:
		return p, at, nil
	case scrape.Err() != nil:
		return nil, at, &failure{resultCancelled, scrape.Err()}
	case ctx.Err() != nil:
		return nil, at, &failure{resultTimeout,
			source.NotYet{Err: fmt.Errorf("%s: no complete answer within %s", e.key.url, timeout)}}
	case errors.Is(f.err, syscall.ECONNREFUSED) && e.key.ports != "":
		return nil, at, &failure{f.result,
			source.NotYet{Err: fmt.Errorf("%s: %w; the pod has the ports %s", e.key.url, f.err, e.key.ports)}}
	case f.result == resultConnection:
		return nil, at, &failure{f.result, source.NotYet{Err: fmt.Errorf("%s: %w", e.key.url, f.err)}}
	default:
		return nil, at, &failure{f.result, fmt.Errorf("%s: %w", e.key.url, f.err)}
	}
}

// requestFailure classifies why there was no answer.
func requestFailure(err error) *failure {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // it names the URL, as fetchPage does
	}
	if _, ok := errors.AsType[redirectError](err); ok {
		return &failure{resultStatus, err}
	}
	return &failure{resultConnection, err}
}

// readAnswer reads the page of an answer until ctx ends.
func (s *Source) readAnswer(ctx context.Context, e *endpoint, r *http.Response,
	selected *selectionSet) (p *page, f *failure) {
	if r.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, r.Body, maxErrorDrain)
		hint := ""
		if r.StatusCode == http.StatusNotFound {
			hint = ": is source.pods.path right?"
		}
		return nil, &failure{resultStatus, fmt.Errorf("it answers %s: must be 200 OK%s", r.Status, hint)}
	}
	openMetrics, err := formatOf(r.Header)
	if err != nil {
		return nil, &failure{resultContent, err}
	}
	if r.ContentLength > s.options.MaxBodyBytes {
		return nil, &failure{resultContent, tooLarge(s.options.MaxBodyBytes)}
	}
	body := &answer{r: r.Body, limit: s.options.MaxBodyBytes, ended: ctx.Err, parsers: s.parsers, endpoint: e}
	p = s.pages.Get().(*page)
	err = p.read(body, selected, s.options.MaxSeries, openMetrics)
	body.endParsing()
	switch {
	case err == nil:
		return p, nil
	case body.broken:
		f = &failure{resultConnection, err}
	default:
		f = &failure{resultContent, err}
	}
	s.pages.Put(p)
	return nil, f
}

func tooLarge(limit int64) error {
	return fmt.Errorf("its body is larger than %d bytes", limit)
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

// answer is the body of a response. Each part is parsed before the next one is read. Reading fails
// beyond a limit, and once the scrape has ended, even if the rest has arrived.
//
// Only a few long answers are parsed at a time. Otherwise all slots could have a part to parse at once,
// and all other work would wait for a processor.
type answer struct {
	r        io.Reader
	n, limit int64
	ended    func() error
	broken   bool // r has failed

	parsers  *namespaceLimiter
	endpoint *endpoint
	parsing  bool // the endpoint has a slot of parsers
}

// Read implements io.Reader.
func (a *answer) Read(b []byte) (int, error) {
	a.endParsing()
	n, err := 0, a.ended()
	if err == nil {
		n, err = a.r.Read(b)
	}
	a.n += int64(n)
	a.broken = err != nil && !errors.Is(err, io.EOF)
	if a.n > a.limit {
		a.broken, err = false, tooLarge(a.limit)
	}
	if a.n > shortAnswer {
		a.beginParsing()
	}
	return n, err
}

func (a *answer) beginParsing() {
	a.parsing = true
	if !a.parsers.acquire(a.endpoint) {
		<-a.endpoint.parse
	}
}

func (a *answer) endParsing() {
	if !a.parsing {
		return
	}
	a.parsing = false
	if next := a.parsers.release(a.endpoint); next != nil {
		next.parse <- struct{}{}
	}
}

// Package forward has a second adapter answer reads of external metrics that are not Foresail's,
// because a cluster sends all of external.metrics.k8s.io to one server.
//
// The three names of package serving are Foresail's, and every other one goes to the second
// adapter: what it lists decides nothing, as some adapters serve more than they list. Path, query,
// Accept, status and body pass through unchanged.
//
// A second adapter that is slow or down costs Foresail's own metrics nothing. It has a transport
// and limits of its own, a read waits at most [timeLimit] for it and is not repeated, and after
// [maxFailures] reads without an answer the next ones fail at once. Nor does a metric that is slow
// cost the others: it has a share of the reads in flight, and while the list of metrics is answered
// it is not taken for an adapter that is down. Its list of metrics is read in the background.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"

	"github.com/foresail/foresail/adapter/serving"
)

const (
	// timeLimit bounds a request to the second adapter. It is the time that an aggregator waits for
	// discovery, and leaves an HPA two thirds of its 15 s.
	timeLimit = 5 * time.Second
	// maxInFlight bounds the reads that wait for the second adapter. The API server library serves 400
	// requests at a time, so that three quarters are left for Foresail's own.
	maxInFlight = 100
	// maxOfNamespace bounds those of one namespace, so that others can read while its metrics are slow.
	maxOfNamespace = 25
	// maxBytes bounds an answer, which passes through in pieces, and a list of metrics, which does not.
	maxBytes = 16 << 20
	// maxHeaderBytes bounds the headers of an answer.
	maxHeaderBytes = 1 << 20

	prefix = "/apis/external.metrics.k8s.io/v1beta1"
	// hop marks the requests of a Forwarder. One that comes back has been sent in a circle.
	hop = "1.1 foresail"
)

// Options of a Forwarder.
type Options struct {
	// Host is the host and port of the second adapter, which serves HTTPS.
	Host string
	// CAFile has the certificate authorities, in PEM, one of which has signed the certificate of the
	// second adapter. It is read again for each connection.
	CAFile string
	// InsecureSkipTLSVerify accepts any certificate in place of CAFile. Any server that answers then
	// receives Foresail's token.
	InsecureSkipTLSVerify bool
	// Cluster has the credentials of Foresail, with which it authenticates itself to the second adapter too.
	Cluster    *rest.Config
	Registerer prometheus.Registerer
	Now        func() time.Time
}

// Forwarder forwards to one second adapter. Create it with New; Run lists the metrics.
type Forwarder struct {
	host      string
	transport http.RoundTripper
	now       func() time.Time
	limit     time.Duration // timeLimit, or less in tests
	inFlight  inFlight
	breaker   *breaker
	metrics   *telemetry
	listed    atomic.Pointer[[]string]
}

// New connects to nothing yet.
func New(o Options) (*Forwarder, error) {
	transport, err := newTransport(o)
	if err != nil {
		return nil, fmt.Errorf("connect to the second adapter %s: %w", o.Host, err)
	}
	return newForwarder(o, transport), nil
}

func newForwarder(o Options, transport http.RoundTripper) *Forwarder {
	b := newBreaker(o.Now)
	return &Forwarder{
		host: o.Host, transport: transport, now: o.Now, limit: timeLimit,
		inFlight: inFlight{of: map[string]int{}}, breaker: b, metrics: newTelemetry(o.Registerer, b.available),
	}
}

// Handler forwards reads of metrics that are not Foresail's, and leaves everything else to next.
// Requests must have been authenticated and authorized.
func (f *Forwarder) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := foreign(r); ok {
			f.forward(w, r, info.Namespace, info.Resource)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign returns what a request reads, and whether it is to be forwarded. The path must be exactly
// the one for which the caller was authorized: what the second adapter might take for another
// metric or namespace stays here.
func foreign(r *http.Request) (*request.RequestInfo, bool) {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || r.Method != http.MethodGet || info.Verb != "get" && info.Verb != "list" {
		return nil, false
	}
	metric := info.Resource
	if isDots(info.Namespace) || isDots(metric) || r.URL.Path != prefix+"/namespaces/"+info.Namespace+"/"+metric {
		return nil, false
	}
	if slices.Contains(r.Header.Values("Via"), hop) {
		return nil, false
	}
	return info, !slices.Contains(serving.Metrics(), metric)
}

func isDots(segment string) bool { return segment == "" || segment == "." || segment == ".." }

// forward has the second adapter answer, or says why it does not.
func (f *Forwarder) forward(w http.ResponseWriter, r *http.Request, namespace, metric string) {
	leave, busy := f.inFlight.enter(namespace)
	if busy != "" {
		f.refuse(w, r, metric, resultBusy, "does not answer: "+busy)
		return
	}
	defer leave()
	probe, cause := f.breaker.admit()
	if cause != nil {
		f.refuse(w, r, metric, resultOpen, fmt.Sprintf("does not answer: %v", cause))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), f.limit)
	defer cancel()
	a := &attempt{f: f, metric: metric, began: f.now()}
	// a body that ends early makes the proxy panic, so that its reader notices
	defer func() { f.finish(r.Context(), a, probe) }()
	proxy := httputil.ReverseProxy{
		Rewrite: f.rewrite, Transport: finalOnly{f.transport}, ErrorLog: log.New(io.Discard, "", 0),
		ModifyResponse: a.receive,
		ErrorHandler:   a.fail,
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// rewrite makes the request to the second adapter. Of the headers it gets what has to do with the
// form of an answer, and no credentials but Foresail's, which the transport adds.
func (f *Forwarder) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "https", f.host, f.host
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	p.Out.Body, p.Out.ContentLength, p.Out.TransferEncoding = http.NoBody, 0, nil
	p.Out.Header = http.Header{"Via": {hop}}
	for _, name := range []string{"Accept", "Accept-Encoding", "User-Agent"} {
		if values, ok := p.In.Header[name]; ok {
			p.Out.Header[name] = values
		}
	}
}

// finalOnly drops interim answers such as 103 Early Hints. The proxy would pass them on, and clear
// the headers that this server has set.
type finalOnly struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t finalOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.RoundTripper.RoundTrip(r.WithContext(untraced{r.Context()}))
}

// untraced is a context without the trace by which a client hears of interim answers.
type untraced struct{ context.Context }

// Value implements [context.Context].
func (c untraced) Value(key any) any {
	value := c.Context.Value(key)
	if _, is := value.(*httptrace.ClientTrace); is {
		return nil
	}
	return value
}

// attempt is a read that has been forwarded.
type attempt struct {
	f      *Forwarder
	metric string
	began  time.Time
	code   int   // of the answer; 0: none
	err    error // why there is no answer, or not all of it
}

var (
	errTooLarge = fmt.Errorf("answers with more than %d bytes", maxBytes)
	errRedirect = errors.New("answers with a redirect")
)

// passedOn are the headers of an answer that its reader gets: those that say how to read the body,
// and warnings. Any other could change how the reader treats this server. Clients of Kubernetes
// would wait as long as a Retry-After says, and an HPA controller would keep other HPAs waiting.
var passedOn = []string{"Content-Type", "Content-Encoding", "Content-Length", "Vary", "Warning"}

// receive checks and corrects the header of an answer. A redirect is rejected: a client that follows it
// would send the reader's credentials to another server.
func (a *attempt) receive(response *http.Response) error {
	a.code = response.StatusCode
	switch {
	case response.ContentLength > maxBytes:
		return errTooLarge
	case a.code >= 300 && a.code < 400:
		return fmt.Errorf("%w: %d %s", errRedirect, a.code, http.StatusText(a.code))
	}
	header := http.Header{}
	for _, name := range passedOn {
		if values, ok := response.Header[name]; ok {
			header[name] = values
		}
	}
	response.Header = header
	response.Body = &body{ReadCloser: response.Body, left: maxBytes, a: a}
	return nil
}

// fail answers in place of the second adapter.
func (a *attempt) fail(w http.ResponseWriter, r *http.Request, err error) {
	a.err = err
	if errors.Is(err, errTooLarge) || errors.Is(err, errRedirect) {
		a.f.answer(w, r, a.metric, err.Error()+", which is not passed on")
		return
	}
	a.f.answer(w, r, a.metric, fmt.Sprintf("does not answer: %v", a.f.plain(err)))
}

// body notices what goes wrong while an answer passes through.
type body struct {
	io.ReadCloser
	left int64
	a    *attempt
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		n, err = 0, errTooLarge
	}
	if err != nil && err != io.EOF {
		b.a.err = err
	}
	return n, err
}

// plain says of a request that was cut off how long that took.
func (f *Forwarder) plain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", f.limit)
	}
	return err
}

// finish counts an attempt. One that its client has given up says nothing about the second adapter.
func (f *Forwarder) finish(client context.Context, a *attempt, probe bool) {
	took := f.now().Sub(a.began)
	result := strconv.Itoa(a.code)
	switch {
	case a.err == nil || errors.Is(a.err, errTooLarge) || errors.Is(a.err, errRedirect):
		f.say(client, f.breaker.answered())
	case client.Err() != nil:
		result = resultCanceled
		f.breaker.gaveUp(probe)
	default:
		result = resultFailed
		if errors.Is(a.err, context.DeadlineExceeded) {
			result = resultTimeout
		}
		f.say(client, f.breaker.failed(f.plain(a.err), probe, result == resultTimeout))
	}
	f.metrics.duration.WithLabelValues(result).Observe(took.Seconds())
}

// refuse answers a read that is not forwarded.
func (f *Forwarder) refuse(w http.ResponseWriter, r *http.Request, metric, result, problem string) {
	f.metrics.duration.WithLabelValues(result).Observe(0)
	f.answer(w, r, metric, problem)
}

// answer is a 503 without a Retry-After, in the form that the client accepts.
func (f *Forwarder) answer(w http.ResponseWriter, r *http.Request, metric, problem string) {
	err := apierrors.NewServiceUnavailable(fmt.Sprintf("Foresail has no metric %q, and the second adapter https://%s %s",
		metric, f.host, problem))
	err.ErrStatus.Details = &metav1.StatusDetails{Group: v1beta1.GroupName, Kind: metric}
	responsewriters.ErrorNegotiated(err, apiserver.Codecs, v1beta1.SchemeGroupVersion, w, r)
}

// say logs that the second adapter has begun or ceased to answer.
func (f *Forwarder) say(ctx context.Context, c change) {
	log := klog.FromContext(ctx).WithValues("address", "https://"+f.host)
	switch {
	case !c.changed:
	case c.cause == nil:
		log.Info("The second adapter answers")
	default:
		log.Info("The second adapter does not answer: reads of its metrics fail. Foresail's own metrics are served as before",
			"cause", c.cause)
	}
}

// inFlight counts the reads that wait for the second adapter.
type inFlight struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by namespace
}

// enter counts a read until leave is called, or says why there are too many.
func (x *inFlight) enter(namespace string) (leave func(), busy string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.all >= maxInFlight:
		return nil, fmt.Sprintf("%d reads wait for it already", maxInFlight)
	case x.of[namespace] >= maxOfNamespace:
		return nil, fmt.Sprintf("%d reads of the namespace wait for it already", maxOfNamespace)
	}
	x.all++
	x.of[namespace]++
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.all--
		if x.of[namespace]--; x.of[namespace] == 0 {
			delete(x.of, namespace)
		}
	}, ""
}

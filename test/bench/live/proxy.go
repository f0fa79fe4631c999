package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresail/foresail/test/env/loadgen"
)

const (
	// refresh is how often a list of the pods is made, and how often, half a period later, the
	// proxy reads it: it knows a pod 2.5 to 7.5 s after that is ready.
	refresh = 5 * time.Second
	// slowStart is the time from then on until a pod gets its full share, in a straight line from a tenth.
	slowStart = 30 * time.Second
)

// mainPath is that of the requests that count.
const mainPath = "/main"

// proxy passes requests on to pods, by weighted round robin with slow start. It is an [http.Handler].
type proxy struct {
	endpoints loadgen.Endpoints
	forward   httputil.ReverseProxy
	begun     time.Time

	mu       sync.Mutex // of the balancer
	balancer *loadgen.Balancer

	inFlight atomic.Int64
	passed   atomic.Int64
	first    atomic.Pointer[time.Time]
}

// addressKey is the context key of the address of a request.
type addressKey struct{}

func newProxy(endpoints loadgen.Endpoints) *proxy {
	p := &proxy{endpoints: endpoints, begun: time.Now(), balancer: loadgen.NewBalancer(slowStart)}
	p.forward = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme = "http"
			r.Out.URL.Host, _ = r.In.Context().Value(addressKey{}).(string)
		},
		// The proxy's own connections to the pods are kept, as proxies do.
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: time.Second}).DialContext, MaxIdleConnsPerHost: 512,
			IdleConnTimeout: 30 * time.Second, DisableCompression: true,
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ErrorLog:     log.New(io.Discard, "", 0), // clients that give up are counted by k6
	}
	return p
}

// ServeHTTP passes a request on, or answers 503 where no pod is known.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	if r.URL.Path == mainPath {
		p.passed.Add(1)
		p.first.CompareAndSwap(nil, &now)
	}
	p.inFlight.Add(1)
	defer p.inFlight.Add(-1)
	address, err := p.pick(now)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), addressKey{}, address)))
}

var errNoPod = errors.New("no pod is known")

func (p *proxy) pick(now time.Time) (string, error) {
	addresses := p.endpoints.Endpoints()
	if len(addresses) == 0 {
		return "", errNoPod
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer.Pick(now.Sub(p.begun), addresses)
}

// since returns how long ago the first request that counts came; false before it.
func (p *proxy) since() (time.Duration, bool) {
	first := p.first.Load()
	if first == nil {
		return 0, false
	}
	return time.Since(*first), true
}

// serve answers on a listener until ctx ends.
func (p *proxy) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: p, ReadHeaderTimeout: requestTimeout, ErrorLog: p.forward.ErrorLog}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // all answers have arrived
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// discovery is how a proxy learns of pods: a list of the ready ones is made every so often, and
// read as often. Those that are gone are left out at once, as pods that drain before they end.
type discovery struct {
	ready loadgen.Endpoints
	made  []string // the list
	read  []string // what the proxy has read of it
	known atomic.Pointer[[]string]
}

// newDiscovery knows the pods that are ready now.
func newDiscovery(ready loadgen.Endpoints) *discovery {
	d := &discovery{ready: ready}
	d.made = ready.Endpoints()
	d.read = d.made
	d.leave()
	return d
}

// Endpoints returns the pods that the proxy knows.
func (d *discovery) Endpoints() []string { return *d.known.Load() }

// run keeps it up to date until ctx ends.
func (d *discovery) run(ctx context.Context) {
	const check = 100 * time.Millisecond
	ticker := time.NewTicker(check)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch n % int(refresh/check) {
		case 0:
			d.list()
		case int(refresh/check) / 2:
			d.look()
		}
		d.leave()
	}
}

func (d *discovery) list() { d.made = d.ready.Endpoints() }

func (d *discovery) look() { d.read = d.made }

// leave leaves out what is not ready any more.
func (d *discovery) leave() {
	ready := d.ready.Endpoints()
	known := slices.DeleteFunc(slices.Clone(d.read),
		func(address string) bool { return !slices.Contains(ready, address) })
	d.known.Store(&known)
}

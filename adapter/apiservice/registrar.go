package apiservice

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// resync is the longest time between two looks at the cluster, if no watch reports a change.
	resync = time.Minute
	// retryAfter is the time to the next try after a failure.
	retryAfter = 5 * time.Second
	// pause is the shortest time between two looks, and so between two writes if another program changes them back.
	pause = time.Second
	// dispute is how long a replica leaves it to others who writes the caBundle, once that has been as it is to be: a newer replica
	// may have changed it, which is the only one after an update. Otherwise the two would change it in turn.
	dispute = 10 * time.Minute
	// lookTimeout bounds a look at the cluster.
	lookTimeout = 30 * time.Second
)

// Options of a Registrar.
type Options struct {
	Client     client.WithWatch // reads the cluster itself, not a cache
	Events     events.EventRecorder
	Registerer prometheus.Registerer
	Now        func() time.Time

	// APIs are what is registered.
	APIs []API
	// Service is what their APIServices are to lead to.
	Service Service
	// Answers returns why this replica has no forecasts to answer with yet, nil if it has. Until then it takes an APIService
	// neither from another server nor from another authority.
	Answers func() error

	// Secret names the Secret of the authority, in the namespace of the Service. Empty makes no certificates: somebody else
	// does, and an APIService is created only if InjectCAFrom says who writes its caBundle.
	Secret string
	// Validity is how long an authority is valid.
	Validity time.Duration
	// InjectCAFrom names the Certificate of cert-manager, as namespace/name, whose authority cert-manager writes into the
	// APIService.
	InjectCAFrom string
}

// Service is a port of a Service.
type Service struct {
	Namespace, Name string
	Port            int32
}

func (s Service) String() string { return s.Namespace + "/" + s.Name }

// Host is the name by which the API server calls the Service and checks its certificate.
func (s Service) Host() string { return s.Name + "." + s.Namespace + ".svc" }

// NewClient returns a client for the objects that a Registrar reads and writes.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), apiregistrationv1.AddToScheme(scheme))
}

// Registrar registers APIs and keeps the serving certificate. Create it with New; Run works.
type Registrar struct {
	o       Options
	metrics *telemetry
	serving serving
	changed chan struct{} // by a watch

	// Of Run alone.
	shared *authority                 // of the Secret, as it was last; nil: not read yet
	signer *authority                 // of the certificate that is served; nil: nobody trusts it
	seen   map[[sha256.Size]byte]bool // certificates of the authorities that the Secret has had, by their digests
	known  time.Time                  // when shared was first known to be in the caBundle; zero: not yet
	began  time.Time
	apis   []*registration

	mu    sync.Mutex
	ready bool
	why   error // of the last look
}

// New returns a Registrar whose certificate, until Run has read the Secret, is one that nobody trusts.
func New(o Options) (*Registrar, error) {
	r := &Registrar{o: o, seen: map[[sha256.Size]byte]bool{}, began: o.Now(), metrics: newTelemetry(o.Registerer, o.Secret != ""), changed: make(chan struct{}, 1)}
	for _, api := range o.APIs {
		r.apis = append(r.apis, &registration{API: api})
	}
	if o.Secret == "" {
		return r, nil
	}
	untrusted, err := newAuthority(o.Now(), o.Validity)
	if err != nil {
		return nil, err
	}
	return r, r.serve(o.Now(), untrusted)
}

// serve replaces the serving certificate.
func (r *Registrar) serve(now time.Time, by *authority) error {
	cert, key, err := by.issue(now, r.o.Service.Host())
	if err != nil {
		return err
	}
	r.serving.set(cert, key)
	r.metrics.expiration.Set(float64(by.cert.NotAfter.Unix()))
	return nil
}

// Certificate returns the serving certificate, nil if somebody else makes it.
func (r *Registrar) Certificate() dynamiccertificates.CertKeyContentProvider {
	if r.o.Secret == "" {
		return nil
	}
	return &r.serving
}

// Ready returns why the API server could not verify this replica, nil from when it could for the first time: a rollout waits
// for a replica that may not read the Secret, and the others serve on. It is nil at once where somebody else makes the
// certificate.
func (r *Registrar) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ready || r.o.Secret == "":
		return nil
	case r.why == nil:
		return errors.New("the serving certificate has not been signed yet")
	default:
		return r.why
	}
}

// Run works until the context ends.
func (r *Registrar) Run(ctx context.Context) error {
	var watches sync.WaitGroup
	defer watches.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, watch := range r.watches() {
		watches.Go(func() { r.watch(ctx, watch) })
	}
	var last string // what was logged of failures
	for {
		next, err := r.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var early *tooEarly
		switch {
		case errors.As(err, &early):
			next = retryAfter
		case err != nil:
			r.metrics.failures.Inc()
			next = retryAfter
			if err.Error() != last {
				klog.FromContext(ctx).Error(err, "Metrics are not registered, or their certificate is not renewed")
			}
		}
		last = fmt.Sprint(err)
		if !sleep(ctx, pause, nil) || !sleep(ctx, next-pause, r.changed) {
			return nil
		}
	}
}

// sleep returns after a while, or once there is a wake-up call; false is the end of the context.
func sleep(ctx context.Context, span time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wake:
	}
	return true
}

// look brings the Secret, the APIServices and the certificate to where they should be, and returns when to look again. What
// can be done in spite of an error is done.
func (r *Registrar) look(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	now := r.o.Now()
	secretErr := r.readAuthority(ctx, now)
	trusted, err := r.register(ctx, now)
	next := now.Add(resync)
	if r.shared != nil && (err == nil || r.expires(now)) {
		at, failed := r.renew(now, trusted)
		err = errors.Join(err, failed)
		next = earlier(at, earlier(next, now.Add(r.shared.overlap()/2)))
	}
	// That it is too early is no failure, and must not make one of the Secret look like none.
	if early := (*tooEarly)(nil); secretErr == nil || errors.As(err, &early) {
		err = cmp.Or(secretErr, err)
	} else {
		err = errors.Join(secretErr, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why, r.ready = err, r.ready || err == nil
	return next.Sub(now), err
}

// renew serves a certificate of the shared authority once the API servers had time to learn it, if they are to: trusted
// reports that its caBundle is Foresail's to write. It returns when there is something to do again.
func (r *Registrar) renew(now time.Time, trusted bool) (time.Time, error) {
	again := r.shared.renewal()
	if r.signer == r.shared {
		return again, nil
	}
	if r.known.IsZero() {
		r.known = now
	}
	if trusted && r.signer != nil {
		if at := r.successionAt(); now.Before(at) {
			return earlier(at, again), nil
		}
	}
	if err := r.serve(now, r.shared); err != nil {
		return again, err
	}
	r.signer = r.shared
	return again, nil
}

// successionAt is when the certificate of the shared authority replaces the present one, which has to have been long enough
// in the caBundle, but not at the cost of an expired certificate.
func (r *Registrar) successionAt() time.Time {
	return earlier(r.known.Add(r.shared.overlap()), r.signer.lastCall())
}

// expires reports whether the present certificate has to be replaced although an APIService could not be changed: those that could
// be must not fail with it.
func (r *Registrar) expires(now time.Time) bool {
	return r.signer != nil && !now.Before(r.signer.lastCall())
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

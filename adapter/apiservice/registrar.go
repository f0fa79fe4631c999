package apiservice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
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
	// pause is the shortest time between two looks, and so between two writes if another program
	// changes them back.
	pause = time.Second
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
	// Service is the Service that their APIServices point to.
	Service Service
	// Answers returns why this replica has no forecasts to answer with yet, nil if it has. Until then
	// it takes an APIService neither from another server nor from another authority.
	Answers func() error

	// Secret names the Secret of the authority, in the namespace of the Service. Empty makes no
	// certificates: another component does, and an APIService is created only if InjectCAFrom says who
	// writes its caBundle.
	Secret string
	// Validity is how long an authority is valid.
	Validity time.Duration
	// InjectCAFrom names the Certificate of cert-manager, as namespace/name, whose authority
	// cert-manager writes into the APIService.
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
	client       client.WithWatch
	now          func() time.Time
	metrics      *telemetry
	certificates *certificates
	apiServices  *apiServices
	changed      chan struct{} // by a watch

	mu    sync.Mutex
	ready bool
	why   error // of the last look
}

// New returns a Registrar whose certificate, until Run has read the Secret, is one that no client trusts.
func New(o Options) (*Registrar, error) {
	metrics := newTelemetry(o.Registerer, o.Secret != "")
	certificates, err := newCertificates(&o, metrics)
	if err != nil {
		return nil, err
	}
	return &Registrar{
		client: o.Client, now: o.Now, metrics: metrics, changed: make(chan struct{}, 1),
		certificates: certificates, apiServices: newAPIServices(&o, metrics, certificates),
	}, nil
}

// Certificate returns the serving certificate, nil if another component issues it.
func (r *Registrar) Certificate() dynamiccertificates.CertKeyContentProvider {
	if r.certificates.secret == nil {
		return nil
	}
	return &r.certificates.serving
}

// Ready returns why the API server could not verify this replica, nil from when it could for the
// first time: a rollout waits for a replica that may not read the Secret, and the others serve on.
// It is nil at once if another component issues the certificate.
func (r *Registrar) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ready || r.certificates.secret == nil:
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

// look brings the Secret, the APIServices and the certificate to where they should be, and returns
// when to look again. What can be done in spite of an error is done.
func (r *Registrar) look(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	now := r.now()
	certificates := r.certificates
	secretErr := certificates.read(ctx, now)
	trusted, err := r.apiServices.register(ctx, now)
	next := now.Add(resync)
	if certificates.shared != nil && (err == nil || certificates.expires(now)) {
		at, failed := certificates.renew(now, trusted)
		err = errors.Join(err, failed)
		next = earlier(at, earlier(next, now.Add(certificates.shared.overlap()/2)))
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

// watched is one object.
type watched struct {
	list client.ObjectList
	key  client.ObjectKey
}

func (r *Registrar) watches() []watched {
	var all []watched
	for _, a := range r.apiServices.all {
		all = append(all, watched{&apiregistrationv1.APIServiceList{}, client.ObjectKey{Name: a.Name()}})
	}
	if secret := r.certificates.secret; secret != nil {
		all = append(all, watched{&corev1.SecretList{}, secret.key})
	}
	return all
}

// watch has Run look again whenever an object changes, and whenever the watch begins again. What
// goes wrong with it, Run notices too.
func (r *Registrar) watch(ctx context.Context, w watched) {
	for {
		changes, err := r.client.Watch(ctx, w.list, client.InNamespace(w.key.Namespace),
			client.MatchingFields{"metadata.name": w.key.Name})
		if err == nil {
			stop := context.AfterFunc(ctx, changes.Stop)
			for range changes.ResultChan() {
				select {
				case r.changed <- struct{}{}:
				default: // it will look anyway
				}
			}
			stop()
		}
		if !sleep(ctx, retryAfter, nil) {
			return
		}
	}
}

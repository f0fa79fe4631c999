package apiservice

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// managedBy labels what Foresail has created, with the value foresail. What has been applied for
	// it has another value or none, and nothing but its caBundle is changed.
	managedBy = "app.kubernetes.io/managed-by"
	foresail  = "foresail"

	injectCAFrom = "cert-manager.io/inject-ca-from"
)

// injections are the annotations by which cert-manager writes the caBundle.
var injections = []string{injectCAFrom, "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca"}

// takeoverDelay is how long a replica waits before it changes who writes a caBundle that was as it
// should be once: a newer replica may have changed it, which is the only one after an update.
// Otherwise the two would change it in turn.
const takeoverDelay = 10 * time.Minute

// apiServices registers APIs at the API server.
type apiServices struct {
	client       client.Client
	events       events.EventRecorder
	metrics      *telemetry
	service      Service
	answers      func() error
	injectCAFrom string
	certificates *certificates
	all          []*registration
}

func newAPIServices(o *Options, metrics *telemetry, c *certificates) *apiServices {
	s := &apiServices{
		client: o.Client, events: o.Events, metrics: metrics, service: o.Service, answers: o.Answers,
		injectCAFrom: o.InjectCAFrom, certificates: c,
	}
	for _, api := range o.APIs {
		s.all = append(s.all, &registration{API: api})
	}
	return s
}

// register creates or corrects the APIServices, but for those of other servers. It reports whether
// the API server checks certificates by a caBundle that Foresail has written. What can be done in
// spite of an error is done.
func (r *apiServices) register(ctx context.Context, now time.Time) (trusted bool, err error) {
	var failed, early []error
	for _, a := range r.all {
		ours := false
		err := race(func() (err error) {
			ours, err = r.tryRegister(ctx, now, a)
			return err
		})
		trusted = trusted || ours
		if _, waits := errors.AsType[*tooEarly](err); waits {
			early = append(early, err)
		} else {
			failed = append(failed, err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return trusted, err
	}
	return trusted, errors.Join(early...)
}

func (r *apiServices) tryRegister(ctx context.Context, now time.Time, a *registration) (trusted bool, err error) {
	present, err := read(ctx, r.client, a.API)
	switch {
	case err != nil:
		return false, err
	case present == nil:
		r.release(a)
		return r.create(ctx, now, a)
	case !present.DeletionTimestamp.IsZero():
		return false, fmt.Errorf("the APIService %s is being deleted", a.Name())
	}
	ours := r.service.holds(present)
	if !r.creates() || !ours && !a.TakeOver {
		r.report(ctx, a, present)
		return false, nil
	}
	desired, err := r.corrected(ctx, now, a, present)
	if err != nil {
		return false, err
	}
	if !ours || injection(desired) != injection(present) {
		if err := r.answers(); err != nil {
			r.report(ctx, a, present)
			return false, &tooEarly{a.Name(), err}
		}
	}
	if !reflect.DeepEqual(desired, present) {
		if err := r.client.Patch(ctx, desired,
			client.MergeFromWithOptions(present, client.MergeFromWithOptimisticLock{})); err != nil {
			return false, fmt.Errorf("change the APIService %s: %w", a.Name(), err)
		}
	}
	a.settled = true
	r.report(ctx, a, desired)
	return r.writesBundle(desired), nil
}

// tooEarly is why the APIService is not changed yet.
type tooEarly struct {
	apiService string
	why        error
}

func (e *tooEarly) Error() string {
	return fmt.Sprintf("the APIService %s is not taken before there are forecasts: %v", e.apiService, e.why)
}

// holderOf returns what an APIService leads to; the zero Service is the API server itself.
func holderOf(s *apiregistrationv1.APIService) Service {
	if s.Spec.Service == nil {
		return Service{}
	}
	return Service{Namespace: s.Spec.Service.Namespace, Name: s.Spec.Service.Name}
}

// nameOfHolder names what an APIService leads to.
func nameOfHolder(s *apiregistrationv1.APIService) string {
	if s.Spec.Service == nil {
		return "kube-apiserver"
	}
	return holderOf(s).String()
}

// holds reports whether an APIService leads to the Service, at any port.
func (s Service) holds(present *apiregistrationv1.APIService) bool {
	holder := holderOf(present)
	return holder.Namespace == s.Namespace && holder.Name == s.Name
}

// creates reports whether it can make an APIService whose certificate is checked.
func (r *apiServices) creates() bool { return r.certificates.secret != nil || r.injectCAFrom != "" }

func (r *apiServices) create(ctx context.Context, now time.Time, a *registration) (trusted bool, err error) {
	if !r.creates() {
		r.report(ctx, a, nil)
		return false, nil
	}
	held, err := r.rival(ctx, a)
	if err != nil {
		return false, err
	}
	if held != nil {
		r.reportRival(ctx, a, held)
		return false, nil
	}
	desired := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: a.Name()}}
	if err := r.fill(ctx, a, desired); err != nil {
		return false, err
	}
	r.fillInjection(desired)
	if err := r.fillBundle(now, desired); err != nil {
		return false, err
	}
	if err := r.client.Create(ctx, desired); err != nil {
		return false, fmt.Errorf("create the APIService %s: %w", a.Name(), err)
	}
	a.settled = true
	r.report(ctx, a, desired)
	return r.writesBundle(desired), nil
}

// corrected returns an APIService as it should be.
func (r *apiServices) corrected(ctx context.Context, now time.Time, a *registration,
	present *apiregistrationv1.APIService) (*apiregistrationv1.APIService, error) {
	desired := present.DeepCopy()
	another := !r.service.holds(present)
	if another {
		desired.OwnerReferences, desired.Spec.CABundle = nil, nil
	}
	if another || present.Labels[managedBy] == foresail {
		if err := r.fill(ctx, a, desired); err != nil {
			return nil, err
		}
		if another || !r.leavesInjection(now, a, present) {
			r.fillInjection(desired)
		}
	}
	return desired, r.fillBundle(now, desired)
}

// fill sets what is set in an APIService of its own. An owner that is there already is not read again.
func (r *apiServices) fill(ctx context.Context, a *registration, s *apiregistrationv1.APIService) error {
	if len(s.OwnerReferences) == 0 {
		owners, err := r.owners(ctx, a.Owner)
		if err != nil {
			return err
		}
		s.OwnerReferences = owners
	}
	metav1.SetMetaDataLabel(&s.ObjectMeta, managedBy, foresail)
	metav1.SetMetaDataLabel(&s.ObjectMeta, "app.kubernetes.io/part-of", foresail)
	s.Spec.Group, s.Spec.Version = a.Group, a.Version
	s.Spec.GroupPriorityMinimum, s.Spec.VersionPriority = 100, a.Priority
	s.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: r.service.Namespace,
		Name: r.service.Name, Port: new(r.service.Port)}
	s.Spec.InsecureSkipTLSVerify = false
	return nil
}

// injection returns from what cert-manager writes the caBundle, the empty string if it does not.
func injection(s *apiregistrationv1.APIService) string {
	for _, name := range injections {
		if from, ok := s.Annotations[name]; ok {
			return name + "=" + from
		}
	}
	return ""
}

// leavesInjection reports whether it is left to others for now who writes the caBundle.
func (r *apiServices) leavesInjection(now time.Time, a *registration, present *apiregistrationv1.APIService) bool {
	expected := present.DeepCopy()
	r.fillInjection(expected)
	switch {
	case injection(present) == injection(expected):
		a.disputed = time.Time{}
		return false
	case a.settled && a.disputed.IsZero():
		a.disputed = now
	}
	return a.settled && now.Before(a.disputed.Add(takeoverDelay))
}

// fillInjection sets whether cert-manager writes the caBundle.
func (r *apiServices) fillInjection(s *apiregistrationv1.APIService) {
	for _, name := range injections {
		delete(s.Annotations, name)
	}
	if r.injectCAFrom != "" {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, injectCAFrom, r.injectCAFrom)
	}
}

// owners are what an APIService goes with. Without the ClusterRole there is none to create:
// Foresail is being uninstalled.
func (r *apiServices) owners(ctx context.Context, owner string) ([]metav1.OwnerReference, error) {
	if owner == "" {
		return nil, nil
	}
	var role rbacv1.ClusterRole
	err := r.client.Get(ctx, client.ObjectKey{Name: owner}, &role)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf(
			"the ClusterRole %s that is to own the APIService does not exist: apply rbac-apiservice.yaml of Foresail's manifests", owner)
	}
	if err != nil {
		return nil, fmt.Errorf("read the ClusterRole %s that is to own the APIService: %w", owner, err)
	}
	if !role.DeletionTimestamp.IsZero() {
		return nil, fmt.Errorf("the ClusterRole %s that is to own the APIService is being deleted", owner)
	}
	return []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole",
		Name: role.Name, UID: role.UID}}, nil
}

// writesBundle reports whether the caBundle of an APIService is Foresail's to write.
func (r *apiServices) writesBundle(s *apiregistrationv1.APIService) bool {
	return r.certificates.secret != nil && injection(s) == ""
}

// fillBundle sets the caBundle, if it is Foresail's to write.
func (r *apiServices) fillBundle(now time.Time, s *apiregistrationv1.APIService) (err error) {
	if r.writesBundle(s) {
		s.Spec.InsecureSkipTLSVerify = false
		s.Spec.CABundle, err = r.certificates.bundle(now, s.Spec.CABundle)
	}
	return err
}

// release forgets who held the API.
func (r *apiServices) release(a *registration) {
	if a.holder != nil && *a.holder != (Service{}) {
		a.holder = nil
		r.metrics.hold(a.Name(), "", false)
	}
}

// report says who holds the API, once for each change. There may be no APIService.
func (r *apiServices) report(ctx context.Context, a *registration, s *apiregistrationv1.APIService) {
	holder, name := Service{}, ""
	if s != nil {
		holder, name = holderOf(s), nameOfHolder(s)
	}
	if a.holder != nil && *a.holder == holder {
		return
	}
	a.holder = &holder
	ours := s != nil && r.service.holds(s)
	r.metrics.hold(a.Name(), name, ours)
	log := klog.FromContext(ctx).WithValues("apiservice", a.Name(), "service", name)
	switch {
	case ours:
		log.Info("Metrics are registered")
		r.event(a, corev1.EventTypeNormal, "Registered", fmt.Sprintf("%s leads to %s", a.Name(), name))
	case s == nil:
		log.Info(
			"Metrics are not registered: no APIService exists, and one is not created for a certificate given by --cert-dir without --apiservice-inject-ca-from")
	default:
		what := fmt.Sprintf("HPAs do not read %s, which registers itself once this APIService is gone%s", r.service,
			a.alternative())
		if preferred := r.preferredTo(a); preferred != "" {
			what = fmt.Sprintf("HPAs do not read its metrics, as %s leads to %s, and they prefer that version for all metrics of the group; remove one of the two",
				preferred, r.service)
		}
		log.Info("Metrics belong to another server: "+what+". "+a.advice(), "wanted", r.service)
		r.event(a, corev1.EventTypeWarning, "HeldByAnother", fmt.Sprintf("%s leads to %s: %s", a.Name(), name, what))
	}
}

// preferredTo names the version of the same group that leads to Foresail and that clients prefer, "" if none does.
func (r *apiServices) preferredTo(a *registration) string {
	for _, other := range r.all {
		if other.Group == a.Group && other.Priority > a.Priority && other.holder != nil &&
			*other.holder == (Service{Namespace: r.service.Namespace, Name: r.service.Name}) {
			return other.Name()
		}
	}
	return ""
}

// reportRival logs once that another server has a version of the group, so that this one is not
// created.
func (r *apiServices) reportRival(ctx context.Context, a *registration, held *HeldError) {
	if a.holder != nil {
		return
	}
	a.holder = &Service{}
	r.metrics.hold(a.Name(), "", false)
	klog.FromContext(
		ctx).Info("Metrics are not registered, because HPAs could no longer read those of another server",
		"apiservice", a.Name(), "held", held.APIService, "service", held.Holder)
}

func (r *apiServices) event(a *registration, kind, reason, note string) {
	about := &corev1.ObjectReference{APIVersion: apiregistrationv1.SchemeGroupVersion.String(),
		Kind: "APIService", Name: a.Name()}
	r.events.Eventf(about, nil, kind, reason, "Register", "%s", note)
}

// rival returns which other version of the same group leads to another server, nil if none does.
func (r *apiServices) rival(ctx context.Context, a *registration) (*HeldError, error) {
	for _, other := range r.all {
		if other == a || other.Group != a.Group {
			continue
		}
		err := Free(ctx, r.client, r.service, other.API)
		if held, ok := errors.AsType[*HeldError](err); ok {
			return held, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

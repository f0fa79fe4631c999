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
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	group   = "external.metrics.k8s.io"
	version = "v1beta1"
	// Name is that of the APIService.
	Name = version + "." + group

	// managedBy labels what Foresail has created, with the value foresail. What has been applied for it has another value or
	// none, and nothing but its caBundle is changed.
	managedBy = "app.kubernetes.io/managed-by"
	foresail  = "foresail"

	injectCAFrom = "cert-manager.io/inject-ca-from"
)

// injections are the annotations by which cert-manager writes the caBundle.
var injections = []string{injectCAFrom, "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca"}

// register creates or corrects the APIService, unless it is another server's. It reports whether the API server checks
// certificates by a caBundle that Foresail has written.
func (r *Registrar) register(ctx context.Context, now time.Time) (trusted bool, err error) {
	err = race(func() error {
		trusted, err = r.tryRegister(ctx, now)
		return err
	})
	return trusted, err
}

func (r *Registrar) tryRegister(ctx context.Context, now time.Time) (trusted bool, err error) {
	var present apiregistrationv1.APIService
	err = r.o.Client.Get(ctx, client.ObjectKey{Name: Name}, &present)
	switch {
	case apierrors.IsNotFound(err):
		r.release()
		return r.create(ctx, now)
	case err != nil:
		return false, fmt.Errorf("read the APIService %s: %w", Name, err)
	case !present.DeletionTimestamp.IsZero():
		return false, fmt.Errorf("the APIService %s is being deleted", Name)
	}
	holder := holderOf(&present)
	if !r.creates() || !r.ours(holder) && !r.o.TakeOver {
		r.report(ctx, &present, holder)
		return false, nil
	}
	desired, err := r.corrected(ctx, now, &present)
	if err != nil {
		return false, err
	}
	if !r.ours(holder) || injection(desired) != injection(&present) {
		if err := r.o.Answers(); err != nil {
			r.report(ctx, &present, holder)
			return false, &tooEarly{err}
		}
	}
	if !reflect.DeepEqual(desired, &present) {
		if err := r.o.Client.Patch(ctx, desired, client.MergeFromWithOptions(&present, client.MergeFromWithOptimisticLock{})); err != nil {
			return false, fmt.Errorf("change the APIService %s: %w", Name, err)
		}
	}
	r.settled = true
	r.report(ctx, desired, holderOf(desired))
	return r.writesBundle(desired), nil
}

// tooEarly is why the APIService is not changed yet.
type tooEarly struct{ why error }

func (e *tooEarly) Error() string {
	return fmt.Sprintf("the APIService %s is not taken before there are forecasts: %v", Name, e.why)
}

// holderOf returns what an APIService leads to; the zero Service is the API server itself.
func holderOf(s *apiregistrationv1.APIService) Service {
	if s.Spec.Service == nil {
		return Service{}
	}
	return Service{Namespace: s.Spec.Service.Namespace, Name: s.Spec.Service.Name}
}

func (r *Registrar) ours(holder Service) bool {
	return holder.Namespace == r.o.Service.Namespace && holder.Name == r.o.Service.Name
}

// creates reports whether the Registrar can make an APIService whose certificate is checked.
func (r *Registrar) creates() bool { return r.o.Secret != "" || r.o.InjectCAFrom != "" }

func (r *Registrar) create(ctx context.Context, now time.Time) (trusted bool, err error) {
	if !r.creates() {
		r.report(ctx, nil, Service{})
		return false, nil
	}
	desired := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: Name}}
	if err := r.fill(ctx, desired); err != nil {
		return false, err
	}
	r.fillInjection(desired)
	if err := r.fillBundle(now, desired); err != nil {
		return false, err
	}
	if err := r.o.Client.Create(ctx, desired); err != nil {
		return false, fmt.Errorf("create the APIService %s: %w", Name, err)
	}
	r.settled = true
	r.report(ctx, desired, holderOf(desired))
	return r.writesBundle(desired), nil
}

// corrected returns an APIService as it should be.
func (r *Registrar) corrected(ctx context.Context, now time.Time, present *apiregistrationv1.APIService) (*apiregistrationv1.APIService, error) {
	desired := present.DeepCopy()
	another := !r.ours(holderOf(present))
	if another {
		desired.OwnerReferences, desired.Spec.CABundle = nil, nil
	}
	if another || present.Labels[managedBy] == foresail {
		if err := r.fill(ctx, desired); err != nil {
			return nil, err
		}
		if another || !r.leavesInjection(now, present) {
			r.fillInjection(desired)
		}
	}
	return desired, r.fillBundle(now, desired)
}

// fill sets what the Registrar sets in an APIService of its own. An owner that is there already is not read again.
func (r *Registrar) fill(ctx context.Context, s *apiregistrationv1.APIService) error {
	if len(s.OwnerReferences) == 0 {
		owners, err := r.owners(ctx)
		if err != nil {
			return err
		}
		s.OwnerReferences = owners
	}
	metav1.SetMetaDataLabel(&s.ObjectMeta, managedBy, foresail)
	metav1.SetMetaDataLabel(&s.ObjectMeta, "app.kubernetes.io/part-of", foresail)
	s.Spec.Group, s.Spec.Version = group, version
	s.Spec.GroupPriorityMinimum, s.Spec.VersionPriority = 100, 100
	s.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: r.o.Service.Namespace, Name: r.o.Service.Name, Port: new(r.o.Service.Port)}
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
func (r *Registrar) leavesInjection(now time.Time, present *apiregistrationv1.APIService) bool {
	wanted := present.DeepCopy()
	r.fillInjection(wanted)
	switch {
	case injection(present) == injection(wanted):
		r.disputed = time.Time{}
		return false
	case r.settled && r.disputed.IsZero():
		r.disputed = now
	}
	return r.settled && now.Before(r.disputed.Add(dispute))
}

// fillInjection sets whether cert-manager writes the caBundle.
func (r *Registrar) fillInjection(s *apiregistrationv1.APIService) {
	for _, name := range injections {
		delete(s.Annotations, name)
	}
	if r.o.InjectCAFrom != "" {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, injectCAFrom, r.o.InjectCAFrom)
	}
}

// owners are what an APIService goes with. Without the ClusterRole there is none to create: Foresail is being uninstalled.
func (r *Registrar) owners(ctx context.Context) ([]metav1.OwnerReference, error) {
	if r.o.Owner == "" {
		return nil, nil
	}
	var role rbacv1.ClusterRole
	if err := r.o.Client.Get(ctx, client.ObjectKey{Name: r.o.Owner}, &role); err != nil {
		return nil, fmt.Errorf("read the ClusterRole %s that is to own the APIService: %w", r.o.Owner, err)
	}
	if !role.DeletionTimestamp.IsZero() {
		return nil, fmt.Errorf("the ClusterRole %s that is to own the APIService is being deleted", r.o.Owner)
	}
	return []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID}}, nil
}

// writesBundle reports whether the caBundle of an APIService is Foresail's to write.
func (r *Registrar) writesBundle(s *apiregistrationv1.APIService) bool {
	return r.o.Secret != "" && injection(s) == ""
}

func (r *Registrar) fillBundle(now time.Time, s *apiregistrationv1.APIService) error {
	if !r.writesBundle(s) {
		return nil
	}
	if r.shared == nil {
		return errors.New("there is no certificate authority yet") // the reason is the Secret's error
	}
	// Replicas of before may serve certificates of another's authority until they have been replaced.
	all, err := bundle(now, s.Spec.CABundle, now.Before(r.began.Add(maxOverlap)), r.shared, r.signer)
	if err != nil {
		return err
	}
	s.Spec.CABundle, s.Spec.InsecureSkipTLSVerify = all, false
	return nil
}

// release forgets who held the API.
func (r *Registrar) release() {
	if r.holder != nil && *r.holder != (Service{}) {
		r.holder = nil
		r.metrics.hold("", false)
	}
}

// report says who holds the API, once for each change. There may be no APIService.
func (r *Registrar) report(ctx context.Context, s *apiregistrationv1.APIService, holder Service) {
	if r.holder != nil && *r.holder == holder {
		return
	}
	r.holder = &holder
	ours := s != nil && r.ours(holder)
	name := holder.String()
	switch {
	case s == nil:
		name = ""
	case s.Spec.Service == nil:
		name = "kube-apiserver"
	}
	r.metrics.hold(name, ours)
	about := &corev1.ObjectReference{APIVersion: apiregistrationv1.SchemeGroupVersion.String(), Kind: "APIService", Name: Name}
	log := klog.FromContext(ctx).WithValues("apiservice", Name, "service", name)
	switch {
	case ours:
		log.Info("External metrics are registered")
		r.o.Events.Eventf(about, nil, corev1.EventTypeNormal, "Registered", "Register", "%s leads to %s", Name, name)
	case s == nil:
		log.Info("External metrics are not registered: no APIService exists, and one is not created for a certificate given by --tls-cert-file without --apiservice-inject-ca-from")
	default:
		log.Info("External metrics belong to another server, so that HPAs do not read Foresail. --apiservice-take-over takes them from it, and --forward-url keeps its metrics readable", "wanted", r.o.Service)
		r.o.Events.Eventf(about, nil, corev1.EventTypeWarning, "HeldByAnother", "Register",
			"%s leads to %s: HPAs do not read %s, which registers itself once this APIService is gone, or with --apiservice-take-over", Name, name, r.o.Service)
	}
}

package keep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	// CheckPeriod is the time between two comparisons of PredictedMetrics with their objects, which are both cached.
	CheckPeriod = 2 * time.Second
	// PredecessorPeriod is the time that the garbage collector may take to delete the object of a PredictedMetric that
	// was deleted and created again.
	PredecessorPeriod = time.Minute
	// FailingPeriod is the time for which requests may fail before the status says so.
	FailingPeriod = 30 * time.Second

	fieldOwner = client.FieldOwner("foresail")
)

// ErrLater is the error of an object that cannot be written now, for a reason that is no fault. A later check tries
// again.
var ErrLater = errors.New("later")

// Forecasts are the snapshots of PredictedMetrics.
type Forecasts interface {
	Get(key types.NamespacedName) (snapshot.Snapshot, bool)
}

// Options are what keepers of all kinds need.
type Options struct {
	Metrics   Metrics
	Client    client.WithWatch // the API server itself
	Discovery Discovery
	Forecasts Forecasts
	Events    events.EventRecorder
	// Namespaces limits which PredictedMetrics are served; empty for all.
	Namespaces []string
	Registerer prometheus.Registerer
	Now        func() time.Time
}

// Scopes returns the namespaces to list objects in: all of Namespaces, or every one at once.
func (o *Options) Scopes() []string {
	if len(o.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return o.Namespaces
}

// Runner is a Keeper of any kind.
type Runner interface {
	Start(ctx context.Context) error
	AddStatus(pm *v1alpha1.PredictedMetric, status *v1alpha1.PredictedMetricStatus, now time.Time)
}

// Keeper keeps the objects of a kind. Only the leader runs it.
//
// Each step can be repeated, so a process may be killed between any two: an object is created only once the status has
// the condition of the kind, and the condition goes only once the object has. So the condition marks every
// PredictedMetric that may own an object. Without such a PredictedMetric no object is read.
type Keeper[S, M any] struct {
	reporter[S]
	Options
	kind Kind[S, M]

	// Of Start alone.
	watcher     *watcher
	kept        map[types.UID]*kept[M]
	retries     retries
	writeBudget WriteBudget // of this check, by namespace
}

// kept has the facts about the object of a PredictedMetric that last from one check to the next.
type kept[M any] struct {
	target Target
	since  time.Time
	memory M

	// What was written, and what the API server made of it: it may add defaults, and drop fields that it does not know.
	desired, got any
}

// wrote reports whether spec is the result that the API server made of want.
func (r *kept[M]) wrote(desired, spec any) bool {
	return r.desired != nil && same(r.desired, desired) && same(r.got, spec)
}

func same(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// New returns a Keeper.
func New[S, M any](kind Kind[S, M], o Options) *Keeper[S, M] {
	k := &Keeper[S, M]{kind: kind, Options: o}
	k.reporter = reporter[S]{
		Fields: &k.kind.Fields, words: &k.kind.Words, events: o.Events, now: o.Now,
		states: map[types.UID]state[S]{}, failing: map[types.UID]time.Time{},
	}
	k.begin()
	return k
}

// begin forgets what was known during an earlier lease.
func (k *Keeper[S, M]) begin() {
	k.reporter.forget(func(types.UID) bool { return true })
	k.kept, k.retries = map[types.UID]*kept[M]{}, retries{}
	k.watcher = newWatcher(&k.kind.Type, &k.Options)
}

// Start keeps objects until the context ends. It may be called again after it has returned.
func (k *Keeper[S, M]) Start(ctx context.Context) error {
	log := klog.FromContext(ctx).WithName(strings.ToLower(k.kind.Subject))
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, log))
	k.begin()
	defer k.begin() // a replica that does not lead knows nothing
	defer k.watcher.stop()
	defer cancel()
	ticker := time.NewTicker(CheckPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := k.check(ctx); err != nil && ctx.Err() == nil {
				log.Error(err, "Cannot check "+k.kind.Kind+"s; trying again", "in", CheckPeriod)
			}
		}
	}
}

// check compares each PredictedMetric with its object, and corrects the difference.
func (k *Keeper[S, M]) check(ctx context.Context) error {
	metrics, err := k.Metrics()
	if err != nil {
		return err
	}
	concerned := map[types.UID]*v1alpha1.PredictedMetric{}
	for _, pm := range metrics {
		if k.concerns(pm) {
			concerned[pm.UID] = pm
		}
	}
	k.forget(func(uid types.UID) bool { return concerned[uid] == nil })
	if k.kind.Prepare != nil {
		k.kind.Prepare(ctx, metrics)
	}
	if len(concerned) == 0 {
		return nil
	}
	objects, err := k.watcher.observe(ctx)
	if err != nil {
		return k.setUnreadable(ctx, concerned, err)
	}
	if objects == nil {
		return nil // they are being listed
	}
	all := newView(objects, byTarget(concerned, func(pm *v1alpha1.PredictedMetric) bool {
		return k.Requested(&pm.Spec) && !pm.Spec.DryRun
	}))
	k.writeBudget = WriteBudget{}
	for _, pm := range concerned { // in any order, so that the first ones do not use up the turns of each check
		k.compare(ctx, pm, all)
	}
	return nil
}

// forget drops the state of some PredictedMetrics.
func (k *Keeper[S, M]) forget(gone func(types.UID) bool) {
	k.reporter.forget(gone)
	maps.DeleteFunc(k.kept, func(uid types.UID, _ *kept[M]) bool { return gone(uid) })
	maps.DeleteFunc(k.retries, func(uid types.UID, _ retry) bool { return gone(uid) })
}

// setUnreadable sets the conditions of PredictedMetrics whose objects cannot be read. It returns an error that may
// pass.
func (k *Keeper[S, M]) setUnreadable(
	ctx context.Context, concerned map[types.UID]*v1alpha1.PredictedMetric, err error,
) error {
	var none S
	message := k.kind.Kind + "s cannot be read: " + err.Error()
	for _, pm := range concerned {
		switch {
		case apierrors.IsForbidden(err):
			k.setCondition(ctx, pm, k.owned(pm), metav1.ConditionFalse, reasonForbidden, message+k.kind.RightsHint)
		case !errors.Is(err, errNotServed):
			k.setFailing(ctx, pm, message)
		case k.Requested(&pm.Spec):
			k.setCondition(ctx, pm, none, metav1.ConditionFalse, reasonNotServed, k.kind.NotServed)
		default:
			k.set(pm, none, nil) // there is none to delete
		}
	}
	if apierrors.IsForbidden(err) || errors.Is(err, errNotServed) {
		return nil
	}
	return err
}

// remembered returns the memory of an object. Another target starts with an empty memory.
func (k *Keeper[S, M]) remembered(pm *v1alpha1.PredictedMetric) *kept[M] {
	t := TargetOfMetric(pm)
	r := k.kept[pm.UID]
	if r == nil || r.target != t {
		r = &kept[M]{target: t, since: k.Now()}
		k.kept[pm.UID] = r
	}
	return r
}

func (k *Keeper[S, M]) compare(ctx context.Context, pm *v1alpha1.PredictedMetric, all *view) {
	switch {
	case !k.Requested(&pm.Spec):
		if !k.retries.waiting(pm, k.Now()) && k.remove(ctx, pm, k.kind.Field+" is absent") {
			var none S
			k.set(pm, none, nil)
		}
	case pm.Spec.DryRun:
		k.pause(ctx, pm, all.ownedBy(pm))
	case !k.announced(pm): // the status has to say Pending first
		k.reporter.forget(func(uid types.UID) bool { return uid == pm.UID })
	case !k.retries.waiting(pm, k.Now()):
		k.ensure(ctx, pm, all)
	}
}

// pause creates and changes no object in dry run. An object that exists is taken as it then is once dry run ends.
func (k *Keeper[S, M]) pause(ctx context.Context, pm *v1alpha1.PredictedMetric, found *Found) {
	delete(k.retries, pm.UID)
	delete(k.kept, pm.UID)
	var owned S
	message := fmt.Sprintf("spec.dryRun is true: no %s is created", k.kind.Kind)
	if found != nil {
		owned = k.kind.StatusOf(pm.Name, found.Spec)
		message = fmt.Sprintf("spec.dryRun is true: %s %s is left as it is%s", k.kind.Kind, pm.Name, k.kind.DryRun)
	}
	k.setCondition(ctx, pm, owned, metav1.ConditionFalse, reasonDryRun, message)
}

// ensure creates or corrects the object of a PredictedMetric, unless it would be the second one of its target.
func (k *Keeper[S, M]) ensure(ctx context.Context, pm *v1alpha1.PredictedMetric, all *view) {
	found := all.ownedBy(pm)
	rival := all.rivalOf(pm, found != nil, &k.kind.Words, k.kind.Rival)
	if rival != "" && found != nil && found.Target != TargetOfMetric(pm) {
		// It would act on the previous target by the load of the present one.
		if !k.remove(ctx, pm, "the PredictedMetric has another target") {
			return
		}
		found = nil
	}
	if rival != "" && found == nil {
		var none S
		k.setCondition(ctx, pm, none, metav1.ConditionFalse, k.kind.Contested,
			fmt.Sprintf("%s: a second %s is not created", rival, k.kind.Kind))
		return
	}
	k.carryOut(ctx, pm, found, rival)
}

// carryOut plans and writes the object of a PredictedMetric, and sets its condition.
func (k *Keeper[S, M]) carryOut(ctx context.Context, pm *v1alpha1.PredictedMetric, found *Found, rival string) {
	plan, err := k.kind.Plan(pm, found, &k.remembered(pm).memory)
	var got any
	if err == nil {
		got, err = k.write(ctx, pm, found, plan)
	}
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		var owned S
		if found != nil {
			owned = k.owned(pm)
		}
		k.setCondition(ctx, pm, owned, refusal.Status, refusal.Reason, refusal.Message)
	case errors.Is(err, ErrLater), apierrors.IsConflict(err): // the next check sees what has changed
	case err != nil:
		k.fail(ctx, pm, err)
	case rival != "":
		k.setCondition(ctx, pm, plan.Status(), metav1.ConditionFalse, k.kind.Contested, rival+": "+k.kind.Conflict)
	default:
		delete(k.retries, pm.UID)
		c := plan.Condition(found, got)
		k.setCondition(ctx, pm, plan.Status(), c.Status, c.Reason, c.Message)
	}
}

// write returns the spec of the object, as the API server has it, once it is as planned.
func (k *Keeper[S, M]) write(
	ctx context.Context, pm *v1alpha1.PredictedMetric, found *Found, plan Plan[S],
) (got any, err error) {
	r, desired := k.remembered(pm), plan.Spec()
	if found != nil && (r.wrote(desired, found.Spec) || same(desired, found.Spec)) {
		return found.Spec, nil
	}
	if !k.writeBudget.Take(pm.Namespace) {
		return nil, ErrLater
	}
	live, err := k.read(ctx, pm)
	switch {
	case apierrors.IsNotFound(err):
		return k.create(ctx, pm, desired)
	case err != nil:
		return nil, err
	case ofPredecessor(pm, live) && k.Now().Sub(r.since) < PredecessorPeriod:
		return nil, ErrLater
	case OwnerOf(live) != pm.UID:
		return nil, &takenError{k.kind.Kind, pm.Name}
	}
	if got := k.kind.Spec(live); r.wrote(desired, got) { // the watch lags behind
		return got, nil
	}
	return k.correct(ctx, pm, live, plan)
}

func (k *Keeper[S, M]) read(ctx context.Context, pm *v1alpha1.PredictedMetric) (client.Object, error) {
	live := k.kind.New(k.watcher.version)
	return live, k.Client.Get(ctx, client.ObjectKeyFromObject(pm), live)
}

func (k *Keeper[S, M]) create(ctx context.Context, pm *v1alpha1.PredictedMetric, desired any) (any, error) {
	o := k.kind.New(k.watcher.version)
	o.SetNamespace(pm.Namespace)
	o.SetName(pm.Name)
	o.SetLabels(maps.Clone(k.kind.Labels))
	o.SetOwnerReferences([]metav1.OwnerReference{Reference(pm)})
	k.kind.SetSpec(o, desired)
	err := k.Client.Create(ctx, o, fieldOwner)
	if apierrors.IsAlreadyExists(err) {
		return nil, &takenError{k.kind.Kind, pm.Name} // since a moment ago
	}
	if err != nil {
		return nil, err
	}
	r := k.remembered(pm)
	r.desired, r.got = desired, k.kind.Spec(o)
	k.reportChange(ctx, pm, "Created", "created %s %s", k.kind.Kind, pm.Name)
	return r.got, nil
}

// correct writes the planned spec to an object that the PredictedMetric owns, unless it changes meanwhile.
func (k *Keeper[S, M]) correct(
	ctx context.Context, pm *v1alpha1.PredictedMetric, live client.Object, plan Plan[S],
) (got any, err error) {
	o := live.DeepCopyObject().(client.Object)
	k.kind.SetSpec(o, plan.Spec())
	if err := k.patch(ctx, o, live); err != nil {
		return nil, err
	}
	r, before := k.remembered(pm), k.kind.Spec(live)
	r.desired, r.got = plan.Spec(), k.kind.Spec(o)
	log := klog.FromContext(ctx).WithValues("predictedmetric", klog.KObj(pm))
	if !same(before, r.got) && !plan.Routine(log, before) {
		k.reportChange(ctx, pm, "Corrected", "wrote the recommended spec to %s %s", k.kind.Kind, pm.Name)
	}
	return r.got, nil
}

// patch writes o over live. Any change of live since it was read makes this a conflict.
func (k *Keeper[S, M]) patch(ctx context.Context, o, live client.Object) error {
	return k.Client.Patch(ctx, o, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}), fieldOwner)
}

// remove deletes the object that a PredictedMetric owns, and reports whether it owns none now. It sets the condition of
// what fails.
func (k *Keeper[S, M]) remove(ctx context.Context, pm *v1alpha1.PredictedMetric, why string) bool {
	if !k.writeBudget.Take(pm.Namespace) {
		return false
	}
	live, err := k.read(ctx, pm)
	gone := false
	if err == nil {
		gone, err = k.delete(ctx, pm, live, why)
	}
	switch {
	case gone, apierrors.IsNotFound(err):
		delete(k.kept, pm.UID)
		return true
	case err != nil && !apierrors.IsConflict(err): // the next check sees what has changed
		k.fail(ctx, pm, err)
	}
	return false
}

// delete drains and then deletes an object that was just read. It reports whether the PredictedMetric owns none now.
func (k *Keeper[S, M]) delete(
	ctx context.Context, pm *v1alpha1.PredictedMetric, live client.Object, why string,
) (gone bool, err error) {
	if OwnerOf(live) != pm.UID {
		return true, nil
	}
	if k.kind.Drain != nil {
		change, done := k.kind.Drain(live, &k.remembered(pm).memory, k.Now())
		if change != nil {
			return false, k.drain(ctx, pm, change, live, why)
		}
		if !done {
			return false, nil
		}
	}
	// Any change since it was read, such as another owner, makes this a conflict.
	unchanged := client.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())}
	if err := k.Client.Delete(ctx, live, unchanged); err != nil {
		return false, err
	}
	k.reportChange(ctx, pm, "Deleted", "deleted %s %s: %s", k.kind.Kind, pm.Name, why)
	return true, nil
}

func (k *Keeper[S, M]) drain(
	ctx context.Context, pm *v1alpha1.PredictedMetric, change, live client.Object, why string,
) error {
	if err := k.patch(ctx, change, live); err != nil {
		return err
	}
	k.setCondition(ctx, pm, k.kind.StatusOf(pm.Name, k.kind.Spec(change)), metav1.ConditionUnknown, reasonRemoving,
		fmt.Sprintf("%s: the %s is empty, and deleted within seconds", why, k.kind.Kind))
	return nil
}

// fail sets the condition of a request that failed, and holds the next one back.
func (k *Keeper[S, M]) fail(ctx context.Context, pm *v1alpha1.PredictedMetric, err error) {
	owned, reason, message := k.owned(pm), "", err.Error()
	switch {
	case errors.As(err, new(*takenError)):
		var none S
		owned, reason = none, reasonNameTaken
	case apierrors.IsForbidden(err):
		reason, message = reasonForbidden, message+k.kind.RightsHint
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		reason = reasonRejected
	default: // it may pass
		k.setFailing(ctx, pm, message)
		klog.FromContext(ctx).Error(err, "Cannot write the "+k.kind.Kind+" of a PredictedMetric; trying again",
			"predictedmetric", klog.KObj(pm), "in", CheckPeriod)
		return
	}
	k.retries.hold(pm, k.Now())
	k.setCondition(ctx, pm, owned, metav1.ConditionFalse, reason, message)
}

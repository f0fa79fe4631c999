package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	// checkPeriod is how often PredictedMetrics and HPAs, both cached, are compared.
	checkPeriod = 2 * time.Second

	fieldOwner = client.FieldOwner("foresail")
)

// Reasons of the condition AutoscalerReady.
const (
	reasonCurrent   = "AsRecommended"
	reasonContested = "TargetHasAnotherAutoscaler"
	reasonNameTaken = "NameTaken"
	reasonForbidden = "Forbidden"
	reasonRejected  = "RejectedByAPIServer"
	reasonInvalid   = "InvalidSpec"
	reasonDryRun    = serving.ReasonDryRun
)

// Forecasts are the snapshots of PredictedMetrics.
type Forecasts interface {
	Get(key types.NamespacedName) (snapshot.Snapshot, bool)
}

// Controller keeps the HPAs of PredictedMetrics with spec.autoscaler. Only the leader runs it.
//
// Each step can be repeated, so that a process may be killed between any two: an HPA is created only once the status has the
// condition AutoscalerReady, and the condition goes only once the HPA has. So the condition marks every PredictedMetric that may
// own an HPA. Without one no HPA is read.
type Controller struct {
	Metrics owned.Metrics
	Client  client.WithWatch // the API server itself
	// Forecasts have the bounds that hold with schedules.
	Forecasts Forecasts
	Events    events.EventRecorder
	// Namespaces are those whose PredictedMetrics are served, empty for all.
	Namespaces []string
	Now        func() time.Time

	mu     sync.Mutex
	states map[types.UID]State
	maxima map[types.UID]*metav1.Condition // nil: not known yet

	// Of Start alone.
	rivals  *rivals
	applied map[types.UID]applied
	retries owned.Retries
	turns   owned.Turns // of this check, by namespace
}

// State is what the status of a PredictedMetric has of its HPA.
type State struct {
	HPA       string            // the name of the HPA that it owns, "" if there is none
	Condition *metav1.Condition // nil: none, as spec.autoscaler is absent and the HPA has gone
}

// applied is what was written, and what the API server made of it: it adds defaults, and drops fields that it does not know.
type applied struct {
	want, got autoscalingv2.HorizontalPodAutoscalerSpec
}

// State returns what is known of the HPA of a PredictedMetric; false if nothing is known, or if there is no Controller.
func (c *Controller) State(uid types.UID) (State, bool) {
	if c == nil {
		return State{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.states[uid]
	return s, ok
}

func (c *Controller) set(uid types.UID, s State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states[uid] = s
}

// forget leaves what is known of the PredictedMetrics that are kept.
func (c *Controller) forget(keep func(types.UID) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.states, func(uid types.UID, _ State) bool { return !keep(uid) })
	maps.DeleteFunc(c.applied, func(uid types.UID, _ applied) bool { return !keep(uid) })
	maps.DeleteFunc(c.retries, func(uid types.UID, _ owned.Retry) bool { return !keep(uid) })
}

// Start keeps HPAs until the context ends. It may be called again after it has returned.
func (c *Controller) Start(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("autoscaler"))
	c.begin()
	defer c.rivals.wait()
	ticker := time.NewTicker(checkPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := c.check(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Cannot check HorizontalPodAutoscalers; trying again", "in", checkPeriod)
			}
		}
	}
}

// begin forgets what was known during an earlier lease.
func (c *Controller) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states, c.maxima = map[types.UID]State{}, nil
	c.applied, c.retries = map[types.UID]applied{}, owned.Retries{}
	c.rivals = newRivals(c.Client, c.Namespaces, c.Now)
}

// concerned returns whether a PredictedMetric asks for an HPA, or may own one.
func concerned(pm *v1alpha1.PredictedMetric) bool { return pm.Spec.Autoscaler != nil || announced(pm) }

// announced returns whether the status says that there may be an HPA.
func announced(pm *v1alpha1.PredictedMetric) bool {
	return meta.FindStatusCondition(pm.Status.Conditions, v1alpha1.ConditionAutoscalerReady) != nil
}

// check compares each PredictedMetric with its HPA, and mends the difference.
func (c *Controller) check(ctx context.Context) error {
	metrics, err := c.Metrics()
	if err != nil {
		return err
	}
	present := map[types.UID]*v1alpha1.PredictedMetric{}
	var bounded []*v1alpha1.PredictedMetric
	for _, pm := range metrics {
		if concerned(pm) && pm.DeletionTimestamp == nil { // the garbage collector deletes the HPA with it
			present[pm.UID] = pm
		}
		if pm.Spec.MaxReplicas != nil {
			bounded = append(bounded, pm)
		}
	}
	c.forget(func(uid types.UID) bool { return present[uid] != nil })
	if len(present)+len(bounded) > 0 {
		c.rivals.list(ctx)
	}
	c.compareMaxima(bounded)
	return c.checkHPAs(ctx, present)
}

func (c *Controller) checkHPAs(ctx context.Context, present map[types.UID]*v1alpha1.PredictedMetric) error {
	if len(present) == 0 {
		return nil
	}
	all, err := c.rivals.observe(ctx, present)
	if apierrors.IsForbidden(err) {
		for _, pm := range present {
			c.refuse(ctx, pm, c.owned(pm), reasonForbidden, "HorizontalPodAutoscalers cannot be read: "+err.Error())
		}
		return nil
	}
	if err != nil || all == nil {
		return err
	}
	c.turns = owned.Turns{}
	for _, pm := range present {
		switch {
		case pm.Spec.Autoscaler == nil:
			c.retire(ctx, pm)
		case pm.Spec.DryRun:
			c.leave(ctx, pm, all)
		default:
			c.keep(ctx, pm, all)
		}
	}
	return nil
}

// owned returns the name of the HPA that a PredictedMetric was last known to own.
func (c *Controller) owned(pm *v1alpha1.PredictedMetric) string {
	if s, ok := c.State(pm.UID); ok {
		return s.HPA
	}
	return pm.Status.Autoscaler
}

// leave creates and changes no HPA in dry run. One that there is reads an error, and so keeps the replicas.
func (c *Controller) leave(ctx context.Context, pm *v1alpha1.PredictedMetric, all *observed) {
	delete(c.retries, pm.UID)
	if found, exists := all.hpas[client.ObjectKeyFromObject(pm)]; exists && found.owner == pm.UID {
		c.rest(ctx, pm, pm.Name, fmt.Sprintf("spec.dryRun is true: HorizontalPodAutoscaler %s is left as it is; it reads no forecast, and keeps the replicas within its bounds", pm.Name))
		return
	}
	c.rest(ctx, pm, "", "spec.dryRun is true: no HorizontalPodAutoscaler is created")
}

// keep creates or corrects the HPA of a PredictedMetric, unless that would be the second one of its target.
func (c *Controller) keep(ctx context.Context, pm *v1alpha1.PredictedMetric, all *observed) {
	if !announced(pm) {
		c.mu.Lock()
		delete(c.states, pm.UID) // the status has to say Pending first
		c.mu.Unlock()
		return
	}
	if c.retries.Wait(pm, c.Now()) {
		return
	}
	found, exists := all.hpas[client.ObjectKeyFromObject(pm)]
	mine := exists && found.owner == pm.UID
	rival := all.rivalOf(pm, mine)
	if rival != "" && mine && found.target != owned.TargetOfMetric(pm) {
		// It would scale the target of before by the load of the present one.
		if mine = !c.remove(ctx, pm, "the PredictedMetric has another target"); mine {
			return
		}
	}
	if rival != "" && !mine {
		c.refuse(ctx, pm, "", reasonContested, fmt.Sprintf("%s: a second HorizontalPodAutoscaler is not created", rival))
		return
	}
	got, err := c.ensure(ctx, pm, found, mine)
	switch {
	case errors.Is(err, owned.ErrTurn), errors.Is(err, errNoBounds), apierrors.IsConflict(err): // the next check sees what has changed
	case err != nil:
		c.fail(ctx, pm, err)
	case rival != "":
		c.refuse(ctx, pm, pm.Name, reasonContested, fmt.Sprintf("%s: autoscalers that share pods do not scale; remove that one, or spec.autoscaler", rival))
	default:
		c.accept(pm, got)
	}
}

// errNoBounds is the error of a PredictedMetric with schedules whose bounds are not known, as after a start, or while its spec is invalid.
// An HPA keeps those of before.
var errNoBounds = errors.New("the bounds that hold now are not known")

// wanted returns the HPA that a PredictedMetric is to have now. With schedules its bounds are those of the moment: unlike the metric,
// these need no forecast.
func (c *Controller) wanted(pm *v1alpha1.PredictedMetric) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	hpa, err := For(pm)
	if err != nil || len(pm.Spec.Schedules) == 0 {
		return hpa, err
	}
	s, _ := c.Forecasts.Get(client.ObjectKeyFromObject(pm))
	if s.Bounds == nil {
		return nil, errNoBounds
	}
	hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = new(int32(s.Bounds.Min)), int32(s.Bounds.Max)
	return hpa, nil
}

// ensure returns the spec of the HPA once it is as recommended.
func (c *Controller) ensure(ctx context.Context, pm *v1alpha1.PredictedMetric, found row, mine bool) (*autoscalingv2.HorizontalPodAutoscalerSpec, error) {
	want, err := c.wanted(pm)
	if err != nil {
		return nil, err
	}
	last, known := c.applied[pm.UID]
	known = known && equality.Semantic.DeepEqual(last.want, want.Spec)
	if mine && known && equality.Semantic.DeepEqual(last.got, *found.spec) {
		return &last.got, nil
	}
	if !c.turns.Take(pm.Namespace) {
		return nil, owned.ErrTurn
	}
	var live autoscalingv2.HorizontalPodAutoscaler
	err = c.Client.Get(ctx, client.ObjectKeyFromObject(pm), &live)
	switch {
	case apierrors.IsNotFound(err):
		return c.create(ctx, pm, want)
	case err != nil:
		return nil, err
	case owned.By(&live) != pm.UID:
		return nil, &owned.TakenError{Kind: "HorizontalPodAutoscaler", Name: live.Name}
	case known && equality.Semantic.DeepEqual(last.got, live.Spec): // the watch lags behind
		return &last.got, nil
	}
	return c.correct(ctx, pm, want, &live)
}

func (c *Controller) create(ctx context.Context, pm *v1alpha1.PredictedMetric, want *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv2.HorizontalPodAutoscalerSpec, error) {
	hpa := want.DeepCopy()
	hpa.OwnerReferences = []metav1.OwnerReference{owned.Reference(pm)}
	err := c.Client.Create(ctx, hpa, fieldOwner)
	if apierrors.IsAlreadyExists(err) {
		return nil, &owned.TakenError{Kind: "HorizontalPodAutoscaler", Name: hpa.Name} // since a moment ago
	}
	if err != nil {
		return nil, err
	}
	c.applied[pm.UID] = applied{want: want.Spec, got: hpa.Spec}
	c.report(ctx, pm, corev1.EventTypeNormal, "AutoscalerCreated", "created HorizontalPodAutoscaler "+hpa.Name)
	return &hpa.Spec, nil
}

// correct writes what is recommended over the spec of an HPA that is the PredictedMetric's, unless it changes meanwhile.
func (c *Controller) correct(ctx context.Context, pm *v1alpha1.PredictedMetric, want, live *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv2.HorizontalPodAutoscalerSpec, error) {
	hpa := live.DeepCopy()
	hpa.Spec = *want.Spec.DeepCopy()
	if err := c.Client.Patch(ctx, hpa, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return nil, err
	}
	c.applied[pm.UID] = applied{want: want.Spec, got: hpa.Spec}
	if !equality.Semantic.DeepEqual(live.Spec, hpa.Spec) {
		c.report(ctx, pm, corev1.EventTypeNormal, "AutoscalerCorrected", "wrote the recommended spec to HorizontalPodAutoscaler "+hpa.Name)
	}
	return &hpa.Spec, nil
}

// retire deletes the HPA of a PredictedMetric that no longer asks for one.
func (c *Controller) retire(ctx context.Context, pm *v1alpha1.PredictedMetric) {
	if !c.retries.Wait(pm, c.Now()) && c.turns.Take(pm.Namespace) && c.remove(ctx, pm, "spec.autoscaler is absent") {
		c.set(pm.UID, State{})
	}
}

// remove deletes the HPA that a PredictedMetric owns, and returns whether it owns none now. What goes wrong it reports.
func (c *Controller) remove(ctx context.Context, pm *v1alpha1.PredictedMetric, why string) bool {
	var live autoscalingv2.HorizontalPodAutoscaler
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(pm), &live)
	if err == nil && owned.By(&live) == pm.UID {
		// Whatever has changed since it was read, the owner for one, makes this a conflict.
		unchanged := client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}
		if err = c.Client.Delete(ctx, &live, unchanged); err == nil {
			c.report(ctx, pm, corev1.EventTypeNormal, "AutoscalerDeleted", fmt.Sprintf("deleted HorizontalPodAutoscaler %s: %s", live.Name, why))
		}
	}
	switch {
	case err == nil, apierrors.IsNotFound(err):
		delete(c.applied, pm.UID)
		return true
	case !apierrors.IsConflict(err): // the next check sees what has changed
		c.fail(ctx, pm, err)
	}
	return false
}

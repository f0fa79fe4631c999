package capacitybuffer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/adapter/snapshot"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/pipeline"
)

const (
	// checkPeriod is how often PredictedMetrics, forecasts and buffers are compared.
	checkPeriod = 2 * time.Second
	// shrinkPeriod is how often a buffer becomes smaller at the most: while pods take its place, not with each of them.
	shrinkPeriod = 10 * time.Second
	// emptyPeriod is for how long a buffer is empty before it is deleted. Karpenter 1.14 lets go of nodes when a buffer becomes empty, and keeps
	// them when it is deleted. It collects changes for ten seconds at the most.
	emptyPeriod = 15 * time.Second
	// predecessorPeriod is how long the garbage collector may take to delete the buffer of a PredictedMetric that was deleted and
	// created again.
	predecessorPeriod = time.Minute
	// defaultHold is for how long a size is held unless the spec says otherwise, or a node takes longer: as long as an HPA holds its
	// replicas by default. Autoscalers keep an unneeded node for some minutes more.
	defaultHold = 5 * time.Minute

	fieldOwner = client.FieldOwner("foresail")
)

// Forecasts are the snapshots of PredictedMetrics.
type Forecasts interface {
	Get(key types.NamespacedName) (snapshot.Snapshot, bool)
}

// Controller keeps the CapacityBuffers of PredictedMetrics with spec.capacityBuffer. Only the leader runs it.
//
// Each step can be repeated, so that a process may be killed between any two: a buffer is created only once the status has the
// condition CapacityBufferReady, and the condition goes only once the buffer has. So the condition marks every PredictedMetric that
// may own a buffer. Without one neither buffers nor nodes are read.
type Controller struct {
	Metrics   owned.Metrics
	Client    client.WithWatch // the API server itself
	Discovery Discovery
	Forecasts Forecasts
	Nodes     *Nodes
	Events    events.EventRecorder
	// Namespaces are those whose PredictedMetrics are served, empty for all.
	Namespaces []string
	Now        func() time.Time

	mu     sync.Mutex
	states map[types.UID]State

	// Of Start alone.
	nodes   sync.WaitGroup
	watched bool // nodes are
	buffers *buffers
	kept    map[types.UID]*kept
	retries owned.Retries
	turns   owned.Turns // of this check, by namespace
}

// State is what the status of a PredictedMetric has of its buffer.
type State struct {
	Key       types.NamespacedName
	Buffer    *v1alpha1.CapacityBufferStatus // nil: it owns none
	Condition *metav1.Condition              // nil: none, as spec.capacityBuffer is absent and the buffer has gone
}

// kept is what is remembered of a buffer.
type kept struct {
	target  owned.Target
	since   time.Time
	hold    hold
	size    int       // that it was last to have
	sized   bool      // there is such a size
	shrunk  time.Time // when it last became smaller
	emptied time.Time // when it was made empty to be deleted
	failing time.Time // since when requests fail; zero: they do not

	// What was written, and what the API server made of it: it may add defaults, and drop fields that it does not know.
	want, got map[string]any
}

// State returns what is known of the buffer of a PredictedMetric; false if nothing is known, or if there is no Controller.
func (c *Controller) State(uid types.UID) (State, bool) {
	if c == nil {
		return State{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.states[uid]
	return s, ok
}

func (c *Controller) set(pm *v1alpha1.PredictedMetric, s State) {
	s.Key = client.ObjectKeyFromObject(pm)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states[pm.UID] = s
}

// forget leaves what is known of the PredictedMetrics that are kept.
func (c *Controller) forget(keep func(types.UID) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.states, func(uid types.UID, _ State) bool { return !keep(uid) })
	maps.DeleteFunc(c.kept, func(uid types.UID, _ *kept) bool { return !keep(uid) })
	maps.DeleteFunc(c.retries, func(uid types.UID, _ owned.Retry) bool { return !keep(uid) })
}

// Start keeps buffers until the context ends. It may be called again after it has returned.
func (c *Controller) Start(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("capacitybuffer"))
	c.begin()
	ctx, cancel := context.WithCancel(ctx)
	defer c.nodes.Wait()
	defer c.buffers.stop()
	defer c.begin() // a replica that does not lead exposes nothing of another's buffers
	defer cancel()
	ticker := time.NewTicker(checkPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := c.check(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Cannot check CapacityBuffers; trying again", "in", checkPeriod)
			}
		}
	}
}

// begin forgets what was known during an earlier lease.
func (c *Controller) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states = map[types.UID]State{}
	c.kept, c.retries = map[types.UID]*kept{}, owned.Retries{}
	if c.buffers == nil {
		c.buffers = newBuffers(c.Client, c.Discovery, c.Namespaces, c.Now)
	}
	c.buffers.asked, c.watched = time.Time{}, false
}

// concerned returns whether a PredictedMetric asks for a buffer, or may own one.
func concerned(pm *v1alpha1.PredictedMetric) bool {
	return pm.Spec.CapacityBuffer != nil || announced(pm)
}

// announced returns whether the status says that there may be a buffer.
func announced(pm *v1alpha1.PredictedMetric) bool {
	return meta.FindStatusCondition(pm.Status.Conditions, v1alpha1.ConditionCapacityBufferReady) != nil
}

// check compares each PredictedMetric with its buffer, and mends the difference.
func (c *Controller) check(ctx context.Context) error {
	metrics, err := c.Metrics()
	if err != nil {
		return err
	}
	present := map[types.UID]*v1alpha1.PredictedMetric{}
	for _, pm := range metrics {
		if concerned(pm) && pm.DeletionTimestamp == nil { // the garbage collector deletes the buffer with it
			present[pm.UID] = pm
		}
	}
	c.forget(func(uid types.UID) bool { return present[uid] != nil })
	if len(present) == 0 {
		return nil
	}
	c.watchNodes(ctx, present)
	all, err := c.observe(ctx, present)
	if err != nil {
		for _, pm := range present {
			c.suspect(pm, "CapacityBuffers cannot be read: "+err.Error())
		}
	}
	if err != nil || all == nil {
		return err
	}
	c.turns = owned.Turns{}
	for _, pm := range present {
		switch {
		case pm.Spec.CapacityBuffer == nil:
			c.retire(ctx, pm)
		case pm.Spec.DryRun:
			c.leave(ctx, pm, all)
		default:
			c.keep(ctx, pm, all)
		}
	}
	return nil
}

// watchNodes has the startup time of nodes measured from now on, if somebody needs it.
func (c *Controller) watchNodes(ctx context.Context, present map[types.UID]*v1alpha1.PredictedMetric) {
	for _, pm := range present {
		if b := pm.Spec.CapacityBuffer; !c.watched && b != nil && b.NodeStartupTime == nil {
			c.watched = true
			c.nodes.Go(func() { c.Nodes.Watch(ctx) })
		}
	}
}

// observe returns all buffers, nil where there is nothing to compare with, or not yet.
func (c *Controller) observe(ctx context.Context, present map[types.UID]*v1alpha1.PredictedMetric) (*observed, error) {
	before := c.buffers.version
	isServed, err := c.buffers.follow(ctx)
	if isServed && c.buffers.version != before {
		return nil, nil // they are being listed
	}
	if err == nil && isServed {
		var all *observed
		if all, err = c.buffers.observe(present); err == nil {
			return all, nil
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		for _, pm := range present {
			c.refuse(ctx, pm, c.owned(pm), reasonForbidden, "CapacityBuffers cannot be read: "+err.Error()+rightsHint)
		}
	case err != nil:
		return nil, err
	default:
		for _, pm := range present {
			if pm.Spec.CapacityBuffer == nil {
				c.set(pm, State{}) // where there are no buffers there is none to delete
			} else {
				c.refuse(ctx, pm, nil, reasonNotServed, notServed)
			}
		}
	}
	return nil, nil
}

// owned returns what was last known of the buffer that a PredictedMetric owns.
func (c *Controller) owned(pm *v1alpha1.PredictedMetric) *v1alpha1.CapacityBufferStatus {
	if s, ok := c.State(pm.UID); ok {
		return s.Buffer
	}
	return pm.Status.CapacityBuffer
}

// leave creates and changes no buffer in dry run. One that there is keeps its size, which is held once dry run ends as if it had just
// been needed.
func (c *Controller) leave(ctx context.Context, pm *v1alpha1.PredictedMetric, all *observed) {
	delete(c.retries, pm.UID)
	k := c.remembered(pm)
	k.hold, k.sized = hold{}, false
	found, exists := all.buffers[client.ObjectKeyFromObject(pm)]
	if !exists || found.owner != pm.UID {
		c.rest(ctx, pm, nil, "spec.dryRun is true: no CapacityBuffer is created")
		return
	}
	status := &v1alpha1.CapacityBufferStatus{Name: pm.Name}
	if n, ok := replicasIn(found.spec); ok {
		status.Replicas = new(int32(n))
	}
	c.rest(ctx, pm, status, fmt.Sprintf("spec.dryRun is true: CapacityBuffer %s is left as it is, with its spare pods", pm.Name))
}

// keep creates the buffer of a PredictedMetric or gives it its size, unless that would be the second one of its target.
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
	found, exists := all.buffers[client.ObjectKeyFromObject(pm)]
	mine := exists && found.owner == pm.UID
	rival := all.rivalOf(pm, mine)
	if rival != "" && !mine {
		c.refuse(ctx, pm, nil, reasonContested, rival+": a second CapacityBuffer is not created")
		return
	}
	pm = pm.DeepCopy()
	pm.Spec.Default() // for objects stored before a field had its default
	k := c.remembered(pm)
	s := c.sizeOf(pm, k, found, mine)
	if s.unknown != "" && !mine {
		c.wait(pm, nil, reasonNoForecast, s.unknown+": a CapacityBuffer is created once there is")
		return
	}
	err := c.ensure(ctx, pm, k, found, mine, s)
	switch {
	case errors.Is(err, owned.ErrTurn), errors.Is(err, errPredecessor), apierrors.IsConflict(err): // the next check sees what has changed
	case err != nil:
		c.fail(ctx, pm, err)
	case rival != "":
		c.refuse(ctx, pm, s.status(pm), reasonContested, rival+": the spare pods of both add up")
	default:
		c.accept(ctx, pm, s, found, mine)
	}
}

// remembered returns what is remembered of a buffer, nothing of one that was for another target.
func (c *Controller) remembered(pm *v1alpha1.PredictedMetric) *kept {
	t := owned.TargetOfMetric(pm)
	k := c.kept[pm.UID]
	if k == nil || k.target != t {
		k = &kept{target: t, since: c.Now()}
		c.kept[pm.UID] = k
	}
	return k
}

// sized is the size of a buffer, with what it was computed from.
type sized struct {
	need
	replicas int
	horizon  time.Duration
	window   time.Duration // that a trend must have to be carried to the horizon, 0 if it is long enough
	startup  Startup
	set      bool   // the startup time is the user's
	unknown  string // why there is no forecast; the size is that of before
}

// sizeOf returns the size that a buffer is to have. Without a forecast that is the one of before, within the bounds of now.
func (c *Controller) sizeOf(pm *v1alpha1.PredictedMetric, k *kept, found row, mine bool) sized {
	if !k.sized && mine && found.target == k.target { // an earlier leader has left it
		k.size, k.sized = replicasIn(found.spec)
	}
	now, spec := c.Now(), pm.Spec.CapacityBuffer
	s := c.needOf(pm, now)
	if s.unknown != "" {
		k.hold = hold{} // what nobody knew was not needed any less
		k.size = min(k.size, limitOf(spec.MaxReplicas, targetMax(pm, nil), 0))
		s.replicas = k.size
		return s
	}
	if len(k.hold.sizes.kept) == 0 && k.sized {
		k.hold.assume(now, k.size, s.need)
	}
	window := max(defaultHold, s.startup.Time)
	if seconds := spec.ScaleDownStabilizationSeconds; seconds != nil {
		window = time.Duration(*seconds) * time.Second
	}
	s.replicas = k.hold.next(now, window, s.need)
	if k.sized && s.replicas < k.size {
		if now.Sub(k.shrunk) < shrinkPeriod && k.size <= s.limit() {
			s.replicas = k.size
		} else {
			k.shrunk = now
		}
	}
	k.size, k.sized = s.replicas, true
	return s
}

// needOf returns what a forecast asks for, or why there is none.
func (c *Controller) needOf(pm *v1alpha1.PredictedMetric, now time.Time) sized {
	var s sized
	spec := pm.Spec.CapacityBuffer
	s.startup, _ = c.Nodes.Startup()
	if spec.NodeStartupTime != nil {
		s.startup, s.set = Startup{Time: spec.NodeStartupTime.Duration}, true
	}
	f, ok := c.Forecasts.Get(client.ObjectKeyFromObject(pm))
	switch {
	case ok && f.Err != nil:
		s.unknown = "there is no forecast: " + f.Err.Error()
	case !ok || !f.Usable(now) || !f.HasDecision():
		s.unknown = "there is no forecast"
	case f.Forecast.Farther.Horizon == 0:
		s.unknown = "there is no forecast for the time at which a node has started"
	default:
		farther := &f.Forecast.Farther
		s.now, s.then, s.horizon = max(f.Forecast.Target, f.Combined.Desired), farther.Desired, farther.Horizon
		s.min, s.max = int(*spec.MinReplicas), limitOf(spec.MaxReplicas, targetMax(pm, f.Bounds), s.now)
		if farther.WindowNeeded > f.Forecast.Window {
			s.window = farther.WindowNeeded
		}
	}
	return s
}

// targetMax returns the most replicas that the target may have once a node has started, nil without a limit. With schedules these are the
// bounds that hold; where they are not known, the widest.
func targetMax(pm *v1alpha1.PredictedMetric, b *pipeline.Bounds) *int32 {
	_, most := pm.Spec.WidestBounds()
	if b != nil && b.FartherMax < math.MaxInt32 {
		return new(int32(b.FartherMax))
	}
	return most
}

// errPredecessor is the error of a PredictedMetric that was deleted and created again, while the garbage collector has not deleted the
// buffer of the former one yet.
var errPredecessor = errors.New("the buffer of the PredictedMetric of before is being deleted")

// succeeds returns whether an object is of a PredictedMetric of the same name that is gone.
func succeeds(pm *v1alpha1.PredictedMetric, o metav1.Object) bool {
	owner := owned.By(o)
	return owner != "" && owner != pm.UID && metav1.GetControllerOfNoCopy(o).Name == pm.Name
}

// ensure returns once the buffer has its spec.
func (c *Controller) ensure(ctx context.Context, pm *v1alpha1.PredictedMetric, k *kept, found row, mine bool, s sized) error {
	want := specOf(pm, s.replicas)
	known := k.want != nil && reflect.DeepEqual(k.want, want)
	if mine && (known && reflect.DeepEqual(k.got, found.spec) || reflect.DeepEqual(want, found.spec)) {
		return nil
	}
	if !c.turns.Take(pm.Namespace) {
		return owned.ErrTurn
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kindOf(c.buffers.version))
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(pm), live)
	switch {
	case apierrors.IsNotFound(err):
		return c.create(ctx, pm, k, want)
	case err != nil:
		return err
	case succeeds(pm, live) && c.Now().Sub(k.since) < predecessorPeriod:
		return errPredecessor
	case owned.By(live) != pm.UID:
		return &owned.TakenError{Kind: kind, Name: live.GetName()}
	case known && reflect.DeepEqual(k.got, specIn(live)): // the watch lags behind
		return nil
	}
	return c.correct(ctx, pm, k, want, live, s)
}

func (c *Controller) create(ctx context.Context, pm *v1alpha1.PredictedMetric, k *kept, want map[string]any) error {
	buffer := newBuffer(c.buffers.version, pm, want)
	err := c.Client.Create(ctx, buffer, fieldOwner)
	if apierrors.IsAlreadyExists(err) {
		return &owned.TakenError{Kind: kind, Name: pm.Name} // since a moment ago
	}
	if err != nil {
		return err
	}
	k.want, k.got = want, specIn(buffer)
	c.report(ctx, pm, corev1.EventTypeNormal, "CapacityBufferCreated", "created CapacityBuffer "+pm.Name)
	return nil
}

// correct writes the spec over that of a buffer which is the PredictedMetric's, unless it changes meanwhile.
func (c *Controller) correct(ctx context.Context, pm *v1alpha1.PredictedMetric, k *kept, want map[string]any, live *unstructured.Unstructured, s sized) error {
	buffer := live.DeepCopy()
	buffer.Object["spec"] = want
	buffer = buffer.DeepCopy() // want is kept
	if err := c.Client.Patch(ctx, buffer, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return err
	}
	k.want, k.got = want, specIn(buffer)
	if before, _ := replicasIn(specIn(live)); before != s.replicas {
		klog.FromContext(ctx).Info("Resized", "capacitybuffer", klog.KObj(pm), "before", before, "after", s.replicas, "reason", s.explain())
		return nil
	}
	c.report(ctx, pm, corev1.EventTypeNormal, "CapacityBufferCorrected", "wrote the spec of CapacityBuffer "+pm.Name+" anew")
	return nil
}

// retire deletes the buffer of a PredictedMetric that no longer asks for one.
func (c *Controller) retire(ctx context.Context, pm *v1alpha1.PredictedMetric) {
	if c.retries.Wait(pm, c.Now()) || !c.turns.Take(pm.Namespace) {
		return
	}
	switch gone, err := c.remove(ctx, pm); {
	case gone || apierrors.IsNotFound(err):
		delete(c.kept, pm.UID)
		c.set(pm, State{})
	case err != nil && !apierrors.IsConflict(err): // otherwise the next check sees what has changed
		c.fail(ctx, pm, err)
	}
}

// remove empties the buffer that a PredictedMetric owns, and deletes it some time later. It returns whether there is none now.
func (c *Controller) remove(ctx context.Context, pm *v1alpha1.PredictedMetric) (gone bool, err error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kindOf(c.buffers.version))
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(pm), live); err != nil {
		return false, err
	}
	if owned.By(live) != pm.UID {
		return true, nil
	}
	k := c.remembered(pm)
	if n, ok := replicasIn(specIn(live)); !ok || n > 0 {
		k.emptied = c.Now()
		return false, c.empty(ctx, pm, live)
	}
	if k.emptied.IsZero() { // by an earlier leader, or by the forecast: the autoscaler may not have seen it yet
		k.emptied = c.Now()
	}
	if c.Now().Sub(k.emptied) < emptyPeriod {
		return false, nil
	}
	// Whatever has changed since it was read, the owner for one, makes this a conflict.
	unchanged := client.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())}
	if err := c.Client.Delete(ctx, live, unchanged); err != nil {
		return false, err
	}
	c.report(ctx, pm, corev1.EventTypeNormal, "CapacityBufferDeleted", fmt.Sprintf("deleted CapacityBuffer %s: spec.capacityBuffer is absent", pm.Name))
	return true, nil
}

// empty takes all spare pods away.
func (c *Controller) empty(ctx context.Context, pm *v1alpha1.PredictedMetric, live *unstructured.Unstructured) error {
	buffer := live.DeepCopy()
	if err := unstructured.SetNestedField(buffer.Object, int64(0), "spec", "replicas"); err != nil {
		return err
	}
	if err := c.Client.Patch(ctx, buffer, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return err
	}
	status := &v1alpha1.CapacityBufferStatus{Name: pm.Name, Replicas: new(int32(0))}
	c.wait(pm, status, reasonRemoving, "spec.capacityBuffer is absent: the CapacityBuffer is empty, and deleted within seconds")
	return nil
}

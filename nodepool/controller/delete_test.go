package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
)

const others = "example.com/keep"

// drained is a WorkerPool as the API server's defaults make it.
func drained(name string) *v1alpha1.WorkerPool {
	return &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.WorkerPoolSpec{
		Max: 5, Provider: v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{}},
	}}
}

// stored is the WorkerPool as the API server has it, nil if it has none.
func (b *bench) stored(name string) *v1alpha1.WorkerPool {
	b.Helper()
	var pool v1alpha1.WorkerPool
	err := b.reader.Get(b.Context(), client.ObjectKey{Name: name}, &pool)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(b, err)
	return &pool
}

func (b *bench) gone(name string) { b.eventually(func() bool { return b.stored(name) == nil }) }

// setPolicy changes the policy, even if other fields have changed.
func (b *bench) setPolicy(name string, policy v1alpha1.DeletionPolicy) {
	b.Helper()
	b.patch(name, `{"spec":{"deletionPolicy":"`+string(policy)+`"}}`)
}

func (b *bench) patch(name, patch string) {
	b.Helper()
	pool := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := b.client.Patch(context.WithoutCancel(b.Context()), pool, client.RawPatch(types.MergePatchType, []byte(patch)))
	require.NoError(b, client.IgnoreNotFound(err))
}

func isDeleting(t *testing.T, f *fake) bool {
	spec, err := f.options.Spec()
	require.NoError(t, err)
	return spec.Plan.Deleting
}

func TestAPoolIsKeptUntilItsNodesAreGone(t *testing.T) {
	b := newBench(t)
	pool := b.createPool(drained("drained"))
	f := next(b, b.made)
	require.Equal(t, []string{v1alpha1.FinalizerDrain}, b.stored("drained").Finalizers, "before anything is launched")
	require.False(t, isDeleting(t, f))
	require.ErrorContains(t, f.options.ReleaseFinalizer(t.Context()), "is not being deleted")

	require.NoError(t, b.client.Delete(t.Context(), pool))
	b.eventually(func() bool { return isDeleting(t, f) })
	time.Sleep(300 * time.Millisecond) // some reconciliations
	require.NotNil(t, b.stored("drained"))
	require.Empty(t, b.made, "it is the pool that it was")
	require.Empty(t, b.forgot)

	b.eventually(func() bool { return f.options.ReleaseFinalizer(t.Context()) == nil })
	b.gone("drained")
	next(b, f.ended)
	require.Equal(t, "drained", next(b, b.forgot))
	require.NoError(t, f.options.ReleaseFinalizer(t.Context()), "again")
}

func TestADeletedPoolGoesOnAfterARestart(t *testing.T) {
	pool := drained("restarted")
	pool.Finalizers = []string{v1alpha1.FinalizerDrain}
	b := newBench(t)
	b.breakBuild(errors.New("not yet"))
	b.createPool(pool)
	require.NoError(t, b.client.Delete(t.Context(), pool))
	b.eventually(func() bool {
		return meta.IsStatusConditionTrue(b.stored("restarted").Status.Conditions, v1alpha1.ConditionDeleting)
	})
	condition := meta.FindStatusCondition(b.stored("restarted").Status.Conditions, v1alpha1.ConditionDeleting)
	assert.Equal(
		t, "its nodes cannot be removed before the spec is corrected: correct it, or set deletionPolicy to Orphan to leave them", condition.Message)
	b.breakBuild(nil)
	f := next(b, b.made)
	require.True(t, isDeleting(t, f))
}

// A pool that is being deleted launches nothing, whatever its spec.
func TestADeletedPoolWhoseSpecIsRefusedIsEmptied(t *testing.T) {
	for name, first := range map[string]string{"refused-then-deleted": "spec", "deleted-then-refused": "deletion"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			pool := b.createPool(drained(name))
			f := next(b, b.made)
			b.breakBuild(errors.New("no such zone"))
			remove := func() { require.NoError(t, b.client.Delete(t.Context(), pool)) }
			keepPrevious := func() {
				b.patch(name, `{"spec":{"max":9,"provider":{"simulated":{"zones":["z"]}}}}`)
				b.eventually(func() bool {
					f.options.Reporter.Report(t.Context(), nodepool.CycleReport{Pool: name})
					return next(b, b.told).Health != nil
				})
			}
			if first == "spec" {
				keepPrevious()
				require.False(t, isDeleting(t, f))
				remove()
			} else {
				remove()
				b.eventually(func() bool { return isDeleting(t, f) })
				keepPrevious()
			}
			b.eventually(func() bool { return isDeleting(t, f) })
			spec, err := f.options.Spec()
			require.NoError(t, err)
			assert.Equal(t, 5, spec.Plan.Max, "by the spec before")
			assert.False(t, spec.DryRun)
			assert.Empty(t, b.made, "it is the pool that it was")

			dryRun := func() bool {
				spec, err := f.options.Spec()
				require.NoError(t, err)
				return spec.DryRun
			}
			b.patch(name, `{"spec":{"dryRun":true}}`)
			b.eventually(dryRun)
			b.patch(name, `{"spec":{"dryRun":false}}`)
			b.eventually(func() bool { return !dryRun() })
			require.True(t, isDeleting(t, f))
		})
	}
}

func TestOrphanLetsADeletedPoolGo(t *testing.T) {
	for name, broken := range map[string]error{"runs": nil, "cannot-run": errors.New("no such zone")} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			pool, node := b.createPool(drained(name)), "of-"+name
			f := next(b, b.made)
			leave(t, node, name)
			require.NoError(t, b.client.Delete(t.Context(), pool))
			b.eventually(func() bool { return isDeleting(t, f) })
			require.False(t, takesPods(t, node), "it is being removed")
			b.breakBuild(broken)
			b.setPolicy(name, v1alpha1.DeletionPolicyOrphan)
			b.gone(name)
			next(b, f.ended)
			b.eventually(func() bool { return takesPods(t, node) })
		})
	}
}

func TestTheFinalizerFollowsThePolicy(t *testing.T) {
	b := newBench(t)
	pool := drained("changed")
	pool.Finalizers = []string{others}
	b.createPool(pool)
	f := next(b, b.made)
	require.Equal(t, []string{others, v1alpha1.FinalizerDrain}, b.stored("changed").Finalizers)
	b.setPolicy("changed", v1alpha1.DeletionPolicyOrphan)
	b.eventually(func() bool { return len(b.stored("changed").Finalizers) == 1 })
	b.setPolicy("changed", v1alpha1.DeletionPolicyDrain)
	b.eventually(func() bool { return len(b.stored("changed").Finalizers) == 2 })
	require.Empty(t, b.made)

	// The object stays because of other finalizers: nothing more is done for it.
	leave(t, "of-changed", "changed")
	require.NoError(t, b.client.Delete(t.Context(), pool))
	b.eventually(func() bool { return f.options.ReleaseFinalizer(t.Context()) == nil })
	next(b, f.ended)
	b.eventually(func() bool { return takesPods(t, "of-changed") })
	time.Sleep(300 * time.Millisecond)
	require.Equal(t, []string{others}, b.stored("changed").Finalizers)
	require.Empty(t, b.made)
}

// An older ClusterRole must not end every pool.
func TestAPoolRunsWithoutTheRightToItsFinalizer(t *testing.T) {
	b := newBench(t)
	b.mu.Lock()
	b.denied = apierrors.NewForbidden(schema.GroupResource{Resource: "workerpools"}, "unguarded", errors.New("no rule"))
	b.mu.Unlock()
	b.createPool(drained("unguarded"))
	f := next(b, b.made)
	b.eventually(func() bool {
		f.options.Reporter.Report(t.Context(), nodepool.CycleReport{Pool: "unguarded"})
		return next(b, b.told).Health != nil
	})
	f.options.Reporter.Report(t.Context(), nodepool.CycleReport{Pool: "unguarded"})
	require.ErrorContains(t, next(b, b.told).Health,
		"deleting the WorkerPool would leave its instances running: write the finalizer")
	b.mu.Lock()
	b.denied = nil
	b.mu.Unlock()
	b.eventually(func() bool { return len(b.stored("unguarded").Finalizers) == 1 })
	b.eventually(func() bool {
		f.options.Reporter.Report(t.Context(), nodepool.CycleReport{Pool: "unguarded"})
		return next(b, b.told).Health == nil
	})
}

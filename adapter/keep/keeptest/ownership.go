package keeptest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
)

// Ownership tests that a Keeper writes only to its own objects, and gives a target at most one.
func Ownership(t *testing.T, s Subject) {
	run(t, s, map[string]func(*testing.T, Subject){
		"never touches objects of others":    testObjectsOfOthers,
		"never touches released objects":     testReleasedObjects,
		"waits for the predecessor's object": testPredecessor,
		"writes over what it has read":       testWritesOverWhatItHasRead,
		"reports a later rival":              testLaterRival,
		"gives the target to the older":      testOlderOfTwo,
		"follows another target":             testAnotherTarget,
		"does not count dry runs as rivals":  testDryRunIsNoRival,
	})
}

// testObjectsOfOthers: objects of the same name and for the same target belong to others.
func testObjectsOfOthers(t *testing.T, s Subject) {
	of := func(reference metav1.OwnerReference) client.Object {
		o := s.Foreign("checkout", "elsewhere")
		o.SetOwnerReferences([]metav1.OwnerReference{reference})
		return o
	}
	for name, c := range map[string]struct {
		object client.Object
		reason string
	}{
		"name":   {s.Foreign("checkout", "elsewhere"), "NameTaken"},
		"target": {s.Foreign("by-hand", "checkout"), s.Contested},
		"both":   {s.Foreign("checkout", "checkout"), s.Contested},
		"of a PredictedMetric that went": {of(keep.Reference(s.NewMetric("checkout", "checkout", "uid-0", 0))),
			"NameTaken"},
		"owned by another kind": {of(metav1.OwnerReference{
			APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: "x", UID: "uid-1", Controller: new(true),
		}), "NameTaken"},
		"owned by another group": {of(metav1.OwnerReference{
			APIVersion: "x/v1", Kind: "PredictedMetric", Name: "x", UID: "uid-1", Controller: new(true),
		}), "NameTaken"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Play(t, []client.Object{s.Checkout(), c.object}, func(f *Fixture) {
				its := c.object.GetName()
				before := f.Find(its)
				f.Lead()
				f.PassFor(keep.PredecessorPeriod + 5*keep.CheckPeriod)
				assert.Equal(f, "False "+c.reason, f.Reports("checkout"))
				assert.Contains(f, f.Message("checkout"), its)
				assert.Equal(f, []string{"Warning " + c.reason}, f.Sent())
				f.Want("checkout", false)
				f.Pass()
				assert.Equal(f, "none", f.Reports("checkout"))
				assert.Empty(f, f.Wrote())
				assert.Equal(f, before, f.Find(its))

				f.Want("checkout", true)
				f.Pass()
				f.Remove(its)
				f.PassFor(keep.RetryPeriod + 5*keep.CheckPeriod)
				f.AssertKept("checkout")
			})
		})
	}
}

// testReleasedObjects: a user who removes the owner has the object from then on.
func testReleasedObjects(t *testing.T, s Subject) {
	s.Play(t, []client.Object{s.Checkout()}, func(f *Fixture) {
		f.Lead()
		f.Pass()
		f.Edit("checkout", func(o client.Object) {
			f.Drift(o)
			o.SetOwnerReferences(nil)
		})
		released := f.Find("checkout")
		f.Writes()
		f.Pass()
		f.Want("checkout", false)
		f.PassRemoval()
		assert.Empty(f, f.Wrote())
		assert.Equal(f, released, f.Find("checkout"))
	})
}

// testPredecessor: the garbage collector deletes the object of a PredictedMetric that is gone. It
// is no rival of its successor's.
func testPredecessor(t *testing.T, s Subject) {
	s.Play(t, []client.Object{s.Checkout()}, func(f *Fixture) {
		f.Lead()
		f.Pass()
		f.Sent()
		pm := f.Metric("checkout")
		require.NoError(f, f.Client.Delete(f.ctx, pm))
		require.NoError(f, f.Client.Create(f.ctx, s.NewMetric("checkout", "checkout", "uid-2", 0)))
		f.Pass()
		f.Pass()
		assert.Equal(f, "Unknown Pending", f.Reports("checkout"))
		assert.Empty(f, f.Sent())
		f.Remove("checkout")
		f.Pass()
		f.AssertKept("checkout")
	})
}

// testWritesOverWhatItHasRead: the owner may change between a read and the write that follows: the write fails then.
func testWritesOverWhatItHasRead(t *testing.T, s Subject) {
	for verb, c := range map[string]struct {
		change func(*Fixture)
		want   string
	}{
		"patch":  {func(f *Fixture) { f.Grow(f, "checkout") }, "False " + s.Contested},
		"delete": {func(f *Fixture) { f.Want("checkout", false) }, "none"},
	} {
		t.Run(verb, func(t *testing.T) {
			s.Play(t, []client.Object{s.Checkout()}, func(f *Fixture) {
				f.Lead()
				f.Pass()
				var released client.Object
				f.FailRequests(func(v string, _ client.Object) error {
					if v == verb {
						f.FailRequests(nil)
						f.Edit("checkout", func(o client.Object) { o.SetOwnerReferences(nil) })
						released = f.Find("checkout")
						f.Writes()
					}
					return nil
				})
				c.change(f)
				f.PassRemoval()
				assert.Equal(f, []string{verb + " checkout"}, f.Wrote(), "it was tried once")
				assert.Equal(f, released, f.Find("checkout"))
				assert.Equal(f, c.want, f.Reports("checkout"))
			})
		})
	}
}

// testLaterRival: the user decides which of two objects goes: deleting one would leave the target
// to the other, which may be a mistake.
func testLaterRival(t *testing.T, s Subject) {
	s.Play(t, []client.Object{s.Checkout()}, func(f *Fixture) {
		f.Lead()
		f.Pass()
		require.NoError(f, f.Client.Create(f.ctx, f.Foreign("by-hand", "checkout")))
		f.Writes()
		f.Pass()
		assert.Equal(f, "False "+f.Contested+" checkout", f.Reports("checkout"))
		assert.Contains(f, f.Message("checkout"), "by-hand")
		assert.Empty(f, f.Wrote())
		f.Remove("by-hand")
		f.Pass()
		f.AssertKept("checkout")
	})
}

func testOlderOfTwo(t *testing.T, s Subject) {
	s.Play(t, []client.Object{s.Checkout(), s.NewMetric("younger", "checkout", "uid-2", time.Minute)},
		func(f *Fixture) {
			f.Lead()
			f.Pass()
			f.AssertKept("checkout")
			assert.Equal(f, "False "+f.Contested, f.Reports("younger"))
			assert.Equal(f, []string{"create checkout"}, f.Wrote())

			f.Want("checkout", false)
			f.PassRemoval()
			f.AssertKept("younger")
			f.Writes()
			f.Want("checkout", true)
			f.Pass()
			assert.Equal(f, "False "+f.Contested, f.Reports("checkout"), "the younger one has it by now")
			f.AssertKept("younger")
			assert.Empty(f, f.Wrote())
		})
}

func testAnotherTarget(t *testing.T, s Subject) {
	s.Play(t, []client.Object{s.Checkout(), s.Foreign("by-hand", "taken")}, func(f *Fixture) {
		f.Lead()
		f.Pass()
		to := func(target string) {
			f.Change("checkout", func(s *v1alpha1.PredictedMetricSpec) { s.ScaleTargetRef.Name = target })
			f.PassRemoval()
		}
		to("free")
		f.AssertKept("checkout")
		assert.Equal(f, "free", f.Target(f.Find("checkout")))
		to("taken")
		assert.Equal(f, "False "+f.Contested, f.Reports("checkout"))
		assert.Nil(f, f.Find("checkout"), "it would act on free by the load of taken")
		to("checkout")
		f.AssertKept("checkout")
	})
}

// testDryRunIsNoRival: a trial does not keep another PredictedMetric of the target from its object,
// unless it still has one itself.
func testDryRunIsNoRival(t *testing.T, s Subject) {
	trial := s.NewMetric("trial", "checkout", "uid-0", 2*time.Hour)
	trial.Spec.DryRun = true
	s.Play(t, []client.Object{trial, s.Checkout()}, func(f *Fixture) {
		f.Lead()
		f.Pass()
		assert.Equal(f, "False DryRun", f.Reports("trial"))
		f.AssertKept("checkout")
		f.Change("trial", func(s *v1alpha1.PredictedMetricSpec) { s.DryRun = false })
		f.Pass()
		assert.Equal(f, "False "+f.Contested, f.Reports("trial"))
	})
}

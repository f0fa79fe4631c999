package capacitybuffer

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/api/v1alpha1"
)

// The garbage collector deletes the buffer of a PredictedMetric that is gone: the one that takes its place says nothing about it.
func TestBufferOfThePredecessorIsWaitedFor(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.sent()
		f.replace("checkout", "uid-2")
		f.passFor(10 * checkPeriod)
		assert.Empty(f, f.sent())
		f.removeBuffer()
		f.passFor(2 * checkPeriod)
		assert.Equal(f, 6, f.size())
	})
}

func TestRemovesWithTheField(t *testing.T) {
	play(t, []client.Object{checkout(), foreign("other", "other")}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.sent()
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer = nil })
		f.wrote()
		f.pass()
		assert.Equal(f, "Unknown Removing checkout", f.condition("checkout"))
		assert.Zero(f, f.size(), "Karpenter 1.14 lets go of the nodes of an empty buffer, and not of a deleted one")
		f.passFor(emptyPeriod)
		assert.Equal(f, []string{"patch checkout 0", "delete checkout 0"}, f.wrote())
		assert.Nil(f, f.buffer("checkout"))
		assert.NotNil(f, f.buffer("other"))
		assert.Equal(f, "none", f.condition("checkout"))
		assert.Equal(f, []string{"Normal CapacityBufferDeleted"}, f.sent())
	})
}

// TestBuffersOfOthersAreNeverTouched has buffers of the very name, and of the very target, be somebody else's.
func TestBuffersOfOthersAreNeverTouched(t *testing.T) {
	orphan := foreign("checkout", "elsewhere")
	orphan.SetOwnerReferences([]metav1.OwnerReference{owned.Reference(metricOf("checkout", "checkout", "uid-0", 0))})
	impostor := foreign("checkout", "elsewhere")
	impostor.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "x/v1", Kind: "PredictedMetric", Name: "x", UID: "uid-1", Controller: new(true)}})
	for name, c := range map[string]struct {
		buffer *unstructured.Unstructured
		want   string
	}{
		"name":                           {foreign("checkout", "elsewhere"), "False NameTaken"},
		"target":                         {foreign("by-hand", "checkout"), "False TargetHasAnotherBuffer"},
		"both":                           {foreign("checkout", "checkout"), "False TargetHasAnotherBuffer"},
		"of a PredictedMetric that went": {orphan, "False NameTaken"},
		"owned by another kind":          {impostor, "False NameTaken"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []client.Object{checkout(), c.buffer}, func(f *fixture) {
				f.expect(8, 14)
				before := f.buffer(c.buffer.GetName())
				f.lead()
				f.passFor(predecessorPeriod + 5*checkPeriod)
				assert.Equal(f, c.want, f.condition("checkout"))
				assert.Contains(f, f.message("checkout"), c.buffer.GetName())
				assert.Equal(f, []string{"Warning " + strings.Fields(c.want)[1]}, f.sent())
				f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer = nil })
				f.pass()
				assert.Equal(f, "none", f.condition("checkout"))
				assert.Empty(f, f.wrote())
				assert.Equal(f, before, f.buffer(c.buffer.GetName()))

				f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer = &v1alpha1.CapacityBuffer{} })
				f.pass()
				require.NoError(f, f.client.Delete(f.ctx, before))
				f.passFor(owned.RetryPeriod)
				f.pass()
				assert.Equal(f, "Unknown WaitingForNodeAutoscaler checkout", f.condition("checkout"), "the way is free")
			})
		})
	}
}

func TestOlderOfTwoGetsTheTarget(t *testing.T) {
	play(t, []client.Object{checkout(), metricOf("younger", "checkout", "uid-2", time.Minute)}, func(f *fixture) {
		f.expect(8, 14)
		f.expectOf("younger", 8, 14)
		f.lead()
		f.pass()
		assert.Equal(f, "False TargetHasAnotherBuffer", f.condition("younger"))
		assert.Nil(f, f.buffer("younger"))
		assert.Equal(f, 6, f.size())
	})
}

// The owner may change between a read and the write that follows: the write fails then.
func TestReleasedBuffersAreNeverTouched(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.wrote()
		f.fail(func(verb string, o client.Object) error {
			if verb == "patch" && isBuffer(o) {
				f.fail(nil)
				b := f.buffer("checkout")
				b.SetOwnerReferences(nil)
				require.NoError(f, f.client.Update(f.ctx, b))
			}
			return nil
		})
		f.expect(8, 16)
		f.pass()
		assert.Equal(f, []string{"patch checkout 8"}, f.wrote(), "it was tried once")
		assert.Equal(f, 6, f.size())
		assert.Equal(f, "False TargetHasAnotherBuffer", f.condition("checkout"))
		f.change("checkout", func(pm *v1alpha1.PredictedMetric) { pm.Spec.CapacityBuffer = nil })
		f.pass()
		assert.Equal(f, 6, f.size())
		assert.Empty(f, f.wrote())
	})
}

func TestChangesOfOthersAreUndone(t *testing.T) {
	play(t, []client.Object{checkout()}, func(f *fixture) {
		f.expect(8, 14)
		f.lead()
		f.pass()
		f.sent()
		b := f.buffer("checkout")
		require.NoError(f, unstructured.SetNestedField(b.Object, int64(50), "spec", "percentage"))
		b.SetAnnotations(map[string]string{"of": "somebody else"})
		require.NoError(f, f.client.Update(f.ctx, b))
		f.pass()
		assert.NotContains(f, specIn(f.buffer("checkout")), "percentage")
		assert.Equal(f, map[string]string{"of": "somebody else"}, f.buffer("checkout").GetAnnotations())
		assert.Equal(f, []string{"Normal CapacityBufferCorrected"}, f.sent())

		f.change("checkout", func(pm *v1alpha1.PredictedMetric) {
			pm.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "v1", Kind: "ReplicationController", Name: "old"}
			pm.Spec.CapacityBuffer.ProvisioningStrategy = "buffer.gke.io/standby-capacity"
		})
		f.expect(4, 5)
		f.pass()
		assert.Equal(f, map[string]any{
			"scalableRef": map[string]any{"kind": "ReplicationController", "name": "old"},
			"replicas":    int64(1), "provisioningStrategy": "buffer.gke.io/standby-capacity",
		}, specIn(f.buffer("checkout")), "what was held was for another target")

		require.NoError(f, f.client.Delete(f.ctx, f.buffer("checkout")))
		f.pass()
		assert.Equal(f, 1, f.size(), "whoever does not want it takes spec.capacityBuffer away")
	})
}

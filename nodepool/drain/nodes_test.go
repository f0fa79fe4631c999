package drain

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

var theirs = corev1.Taint{Key: "theirs", Value: "kept", Effect: corev1.TaintEffectPreferNoSchedule}

func TestTaintMarksOnce(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, f.drainer.Taint(t.Context(), f.node, "one"))
	first := f.getNode()
	assert.Equal(
		t, []corev1.Taint{theirs, {Key: Mark, Value: "one", Effect: corev1.TaintEffectNoSchedule}}, first.Spec.Taints,
	)
	assert.Equal(t, map[string]string{"theirs": "kept", Mark: "one"}, first.Annotations)

	require.NoError(t, f.drainer.Taint(t.Context(), f.node, "one"))
	assert.Equal(t, first.ResourceVersion, f.getNode().ResourceVersion, "the second call writes nothing")

	require.NoError(t, f.drainer.Taint(t.Context(), f.node, "two"))
	assert.Equal(
		t, []corev1.Taint{theirs, {Key: Mark, Value: "two", Effect: corev1.TaintEffectNoSchedule}}, f.getNode().Spec.Taints,
	)
	marked, err := f.drainer.Marked(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "two", marked[f.node])
}

func TestTaintIsSetAgainAfterItWasRemoved(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, f.drainer.Taint(t.Context(), f.node, "one"))
	f.patchNode(`{"spec":{"taints":[]}}`)
	marked, err := f.drainer.Marked(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "one", marked[f.node], "the annotation remains")
	require.NoError(t, f.drainer.Taint(t.Context(), f.node, "one"))
	assert.Equal(
		t, []corev1.Taint{{Key: Mark, Value: "one", Effect: corev1.TaintEffectNoSchedule}}, f.getNode().Spec.Taints,
	)
}

func TestRestoreUndoesTaintAndCordon(t *testing.T) {
	f := newFixture(t)
	original := f.getNode()
	require.NoError(t, f.drainer.Taint(t.Context(), f.node, "one"))
	require.NoError(t, f.drainer.Cordon(t.Context(), f.node))
	require.NoError(t, f.drainer.Cordon(t.Context(), f.node))
	assert.True(t, f.getNode().Spec.Unschedulable)

	require.NoError(t, f.drainer.Restore(t.Context(), f.node))
	after := f.getNode()
	assert.Equal(t, original.Spec, after.Spec)
	assert.Equal(t, original.Annotations, after.Annotations)
	require.NoError(t, f.drainer.Restore(t.Context(), f.node))
	assert.Equal(t, after.ResourceVersion, f.getNode().ResourceVersion, "the second call writes nothing")
}

func TestRestoreKeepsACordonByOthers(t *testing.T) {
	f := newFixture(t)
	f.patchNode(`{"spec":{"unschedulable":true}}`)
	require.NoError(t, f.drainer.Taint(t.Context(), f.node, "one"))
	require.NoError(t, f.drainer.Cordon(t.Context(), f.node))
	require.NoError(t, f.drainer.Cordon(t.Context(), f.node))
	require.NoError(t, f.drainer.Restore(t.Context(), f.node))
	after := f.getNode()
	assert.True(t, after.Spec.Unschedulable)
	assert.Equal(t, []corev1.Taint{theirs}, after.Spec.Taints)
	assert.Equal(t, map[string]string{"theirs": "kept"}, after.Annotations)
}

func TestRestoreUndoesACordonAfterOthersUncordoned(t *testing.T) {
	f := newFixture(t)
	f.patchNode(`{"spec":{"unschedulable":true}}`)
	require.NoError(t, f.drainer.Cordon(t.Context(), f.node))
	f.patchNode(`{"spec":{"unschedulable":false}}`)
	require.NoError(t, f.drainer.Cordon(t.Context(), f.node))
	assert.True(t, f.getNode().Spec.Unschedulable)
	require.NoError(t, f.drainer.Restore(t.Context(), f.node))
	assert.False(t, f.getNode().Spec.Unschedulable, "the others had uncordoned it")
}

func TestRestoreOfAnUnmarkedNodeWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.patchNode(`{"spec":{"unschedulable":true}}`)
	original := f.getNode()
	require.NoError(t, f.drainer.Restore(t.Context(), f.node))
	assert.Equal(t, original.ResourceVersion, f.getNode().ResourceVersion)
}

func TestMarksOfADeletedNode(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, f.drainer.Restore(t.Context(), "no-such-node"))
	assert.True(t, apierrors.IsNotFound(f.drainer.Taint(t.Context(), "no-such-node", "one")))
	assert.True(t, apierrors.IsNotFound(f.drainer.Cordon(t.Context(), "no-such-node")))
}

// TestMarksSurviveWritesByOthers has another writer change the Node between the read and the write of each mark.
func TestMarksSurviveWritesByOthers(t *testing.T) {
	f := newFixture(t)
	var patches atomic.Int64
	config := server.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && patches.Add(1)%2 == 1 {
				round := string(rune('a' + patches.Load()))
				f.patchNode(`{"spec":{"taints":[{"key":"late","effect":"NoSchedule"}]},` +
					`"metadata":{"labels":{"round":"` + round + `"}}}`)
			}
			return next.RoundTrip(r)
		})
	})
	f.drainer.Client = kubernetes.NewForConfigOrDie(config)
	late := corev1.Taint{Key: "late", Effect: corev1.TaintEffectNoSchedule}

	require.NoError(t, f.drainer.Taint(t.Context(), f.node, "one"))
	assert.Equal(
		t, []corev1.Taint{late, {Key: Mark, Value: "one", Effect: corev1.TaintEffectNoSchedule}}, f.getNode().Spec.Taints,
	)
	require.NoError(t, f.drainer.Cordon(t.Context(), f.node))
	require.NoError(t, f.drainer.Restore(t.Context(), f.node))
	assert.Equal(t, []corev1.Taint{late}, f.getNode().Spec.Taints)
	assert.False(t, f.getNode().Spec.Unschedulable)
	assert.EqualValues(t, 6, patches.Load(), "each mark had one conflict")
}

func TestNodeOf(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct{ providerID, instance, want string }{
		{"test:///" + f.node, "another", f.node},
		{"test:///zone/" + f.node, f.node, f.node},
		{"", f.node, f.node},
		{"test:///another", "another", ""},
	} {
		name, err := f.drainer.NodeOf(t.Context(), c.providerID, c.instance)
		require.NoError(t, err)
		require.Equal(t, c.want, name, c)
	}
	_, err := f.drainer.NodeOf(t.Context(), "test:///"+f.node, "")
	require.ErrorContains(t, err, "no id")

	twin, nodes := &corev1.Node{}, f.client.CoreV1().Nodes()
	twin.Name, twin.Spec.ProviderID = f.node+"-twin", "test:///zone/"+f.node
	_, err = nodes.Create(t.Context(), twin, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, nodes.Delete(context.WithoutCancel(t.Context()), twin.Name, metav1.DeleteOptions{}))
	})
	_, err = f.drainer.NodeOf(t.Context(), "", f.node)
	require.ErrorContains(t, err, "both have the provider id of "+f.node)
}

func TestDeleteNode(t *testing.T) {
	f := newFixture(t)
	require.ErrorContains(t, f.drainer.DeleteNode(t.Context(), f.node, ""), "no provider id")
	require.NoError(t, f.drainer.DeleteNode(t.Context(), f.node, "test:///another"))
	f.getNode()
	require.NoError(t, f.drainer.DeleteNode(t.Context(), f.node, "test:///in/another/way/"+f.node))
	_, err := f.client.CoreV1().Nodes().Get(t.Context(), f.node, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, f.drainer.DeleteNode(t.Context(), f.node, "test:///"+f.node))
}

// TestDeleteNodeKeepsItsSuccessor creates a Node of another instance with the same name just before the deletion.
func TestDeleteNodeKeepsItsSuccessor(t *testing.T) {
	f := newFixture(t)
	config := server.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete {
				require.NoError(
					t, f.client.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), f.node, metav1.DeleteOptions{}),
				)
				f.addNode(f.node)
			}
			return next.RoundTrip(r)
		})
	})
	f.drainer.Client = kubernetes.NewForConfigOrDie(config)
	uid := f.getNode().UID
	require.NoError(t, f.drainer.DeleteNode(t.Context(), f.node, "test:///"+f.node))
	assert.NotEqual(t, uid, f.getNode().UID)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// patchNode changes the Node like another writer.
func (f *fixture) patchNode(patch string) {
	f.Helper()
	_, err := f.client.CoreV1().Nodes().Patch(
		f.Context(), f.node, types.MergePatchType, []byte(patch), metav1.PatchOptions{},
	)
	require.NoError(f, err)
}

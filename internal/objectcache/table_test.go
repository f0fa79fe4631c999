package objectcache

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// phases is a table of the phases of pods by UID, without those that have failed, and what it was
// told of changes.
type phases struct {
	*Table[types.UID, *corev1.Pod, corev1.PodPhase]
	changes []string
}

func newPhases() *phases {
	p := &phases{}
	p.Table = New(Options[types.UID, *corev1.Pod, corev1.PodPhase]{
		What: "pods", Lock: &sync.Mutex{}, Now: time.Now, Key: func(p *corev1.Pod) types.UID { return p.UID },
		Keep: func(p *corev1.Pod) (corev1.PodPhase, bool) { return p.Status.Phase, p.Status.Phase != corev1.PodFailed },
		Changed: func(uid types.UID, before, after corev1.PodPhase) {
			p.changes = append(p.changes, fmt.Sprintf("%s: %s to %s", uid, before, after))
		},
	})
	return p
}

func (p *phases) told() []string {
	defer func() { p.changes = nil }()
	return p.changes
}

func pod(name string, uid types.UID, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}, Status: corev1.PodStatus{Phase: phase}}
}

func TestTableStoresKeptObjects(t *testing.T) {
	p := newPhases()
	for _, step := range []struct {
		what string
		do   func(any) error
		pod  *corev1.Pod
		want []string
	}{
		{"one that is added", p.Add, pod("a", "1", corev1.PodPending), []string{"1:  to Pending"}},
		{"one that changes", p.Update, pod("a", "1", corev1.PodRunning), []string{"1: Pending to Running"}},
		{"one that never mattered", p.Add, pod("b", "2", corev1.PodFailed), nil},
		{"the removal of that", p.Delete, pod("b", "2", corev1.PodFailed), nil},
		{"one that matters no more", p.Update, pod("a", "1", corev1.PodFailed), []string{"1: Running to "}},
		{"another of the name", p.Add, pod("a", "3", corev1.PodRunning), []string{"3:  to Running"}},
		{"the removal of that", p.Delete, pod("a", "3", corev1.PodRunning), []string{"3: Running to "}},
	} {
		require.NoError(t, step.do(step.pod), step.what)
		assert.Equal(t, step.want, p.told(), step.what)
	}
	assert.Empty(t, p.Rows())
	require.ErrorIs(t, p.State(time.Now()), ErrUnsynced)
}

func TestTableIsReplaced(t *testing.T) {
	p := newPhases()
	require.NoError(t, p.Add(pod("a", "1", corev1.PodPending)))
	require.NoError(t, p.Add(pod("b", "2", corev1.PodRunning)))
	p.told()
	require.NoError(t, p.Replace([]any{pod("a", "3", corev1.PodRunning), pod("b", "2", corev1.PodPending),
		pod("c", "4", corev1.PodFailed)}, ""))
	assert.ElementsMatch(t, []string{"1: Pending to ", "2: Running to Pending", "3:  to Running"}, p.told())
	assert.Equal(t, map[types.UID]corev1.PodPhase{"2": corev1.PodPending, "3": corev1.PodRunning}, p.Rows())
	require.NoError(t, p.State(time.Now()))
}

func TestMaxOutageMayBeLess(t *testing.T) {
	for _, c := range []struct{ own, want time.Duration }{{0, MaxOutage}, {time.Second, time.Second},
		{time.Hour, MaxOutage}} {
		p := newPhases()
		p.MaxOutage = c.own
		require.NoError(t, p.Replace(nil, ""))
		p.Touch(errors.New("down"))
		lost := *p.lost
		require.NoError(t, p.State(lost.Add(c.want)))
		require.ErrorContains(t, p.State(lost.Add(c.want+1)), "down")
		p.Touch(nil)
		require.NoError(t, p.State(lost.Add(time.Hour)))
	}
}

func TestTableAcceptsObjectsOfReflectors(t *testing.T) {
	p := newPhases()
	small, err := p.Transformer()(pod("a", "1", corev1.PodRunning))
	require.NoError(t, err)
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(small)
	require.NoError(t, err)
	assert.Equal(t, "a", key)
	require.NoError(t, p.Add(small))
	assert.Equal(t, map[types.UID]corev1.PodPhase{"1": corev1.PodRunning}, p.Rows())
	require.NoError(t, p.Delete(cache.DeletedFinalStateUnknown{Key: "a", Obj: small}))
	assert.Empty(t, p.Rows())

	require.EqualError(t, p.Add("a"), "watching pods: got a string")
	require.EqualError(t, p.Delete(7), "watching pods: got a int")
	require.EqualError(t, p.Replace([]any{&corev1.Node{}}, ""), "watching pods: got a *v1.Node")
	require.NoError(t, p.Resync())
}

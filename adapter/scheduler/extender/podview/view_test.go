package podview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/pipeline"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// answer is one of five minutes ago, of which the last of the scored nodes is the best.
func answer(scored, filtered int) extender.Explanation {
	about := extender.Decision{At: now.Add(-5 * time.Minute), UID: "uid-1",
		Requests: extender.Amounts{CPU: 0.25, Memory: 200 << 20}, Estimate: extender.Amounts{CPU: 0.3,
			Memory: 250 << 20}}
	filter := &extender.FilterDecision{Decision: about, Passed: scored, Filtered: filtered}
	prioritize := &extender.ScoreDecision{Decision: about}
	for i := range scored {
		name := fmt.Sprintf("node-%04d", i)
		cpu := &extender.Share{Predicted: new(2.0), Assumed: 0.25, Pod: 0.25, Allocatable: 4}
		filter.Nodes = append(filter.Nodes, extender.FilterNode{Name: name, Reason: "fits", Message: "passed",
			CPU: cpu})
		prioritize.Nodes = append(prioritize.Nodes,
			extender.ScoredNode{Name: name, Score: i * 10 / scored, Used: 0.625, CPU: cpu,
				Message: "62% used with this pod"})
	}
	for i := range filtered {
		filter.Nodes = append(filter.Nodes, extender.FilterNode{
			Name: fmt.Sprintf("full-%04d", i), Filtered: true, Reason: "memory", Message: "memory would exceed 95%",
			Memory: &extender.Share{Requested: 1 << 30, Pod: 200 << 20, Allocatable: 8 << 30},
		})
	}
	return extender.Explanation{Namespace: "shop", Name: "checkout", Filter: filter, Prioritize: prioritize}
}

func explained(t *testing.T, node string, answers ...extender.Explanation) *Explanation {
	t.Helper()
	e, err := New(types.NamespacedName{Namespace: "shop", Name: "checkout"}, now)
	require.NoError(t, err)
	e.Pod = &State{UID: "uid-1", Scheduler: "default-scheduler", Node: node}
	for i, a := range answers {
		e.Take(fmt.Sprintf("foresail-%d", i), a)
	}
	return e
}

// The page shows what the terminal does, in the same words.
func TestViewHasTheWordsOfTheTable(t *testing.T) {
	e := explained(t, "node-0001", answer(3, 4))
	e.Miss("foresail-z", errors.New("ask the pod foresail-z: 502 Bad Gateway"))
	v := ViewOf(e, e.Unanswered())
	assert.Empty(t, v.Problem)
	var table strings.Builder
	require.NoError(t, Table(&table, e, true))
	require.NoError(t, Table(&table, e, false))
	Warn(&table, e)
	texts := []string{v.Sentence, v.Filtered[0].Such, v.Nodes[0].Message, v.Nodes[0].CPU.Predicted,
		v.Nodes[3].Message, v.Missing[0]}
	for _, f := range v.Facts {
		texts = append(texts, f.Text)
	}
	require.Len(t, texts, 9)
	for _, text := range texts {
		assert.Contains(t, table.String(), text)
	}
	assert.Equal(t, "It went to node-0001, with score 3. node-0002 had 6; the scheduler's own plugins have a say, too.",
		v.Sentence)
	assert.Equal(t, "5m ago, by foresail-0: ", v.Facts[1].Text)
	assert.Equal(t, Reason{Reason: "memory", Nodes: 4,
		Such: "full-0000, full-0001, full-0002, …: memory would exceed 95%"}, v.Filtered[0])
	assert.Equal(t, "7 nodes", v.About)
	require.Len(t, v.Nodes, 7)
	assert.Equal(t, Node{
		Name: "node-0001", Here: true, Verdict: "scored", Score: new(3), Used: "0.62",
		CPU: Amounts{"2.00", "0.25", "0.25", "4.00"}, Memory: Amounts{"?", "?", "?", "?"},
		Message: "62% used with this pod",
	}, v.Nodes[1], "the best is first")
	assert.Equal(t, Node{
		Name: "full-0000", Filtered: true, Verdict: "filtered for memory",
		CPU: Amounts{"?", "?", "?", "?"}, Memory: Amounts{"(1Gi)", "0", "200Mi", "8Gi"},
		Message: "memory would exceed 95%",
	}, v.Nodes[3])
}

func TestViewOfNodesWithoutScores(t *testing.T) {
	single := answer(1, 1)
	single.Prioritize = nil
	v := ViewOf(explained(t, "node-0000", single), nil)
	require.Len(t, v.Nodes, 2)
	assert.Equal(t, "passed", v.Nodes[0].Verdict)
	assert.Nil(t, v.Nodes[0].Score, "unknown is not zero")
	assert.Equal(t, "It went to node-0000, the one node that was left.", v.Sentence)

	another := explained(t, "", answer(1, 0))
	another.Pod.UID = "uid-2"
	assert.Equal(t, "The answers are about an earlier pod of that name.", ViewOf(another, nil).Another)

	unfiltered := answer(2, 0)
	unfiltered.Filter = nil
	v = ViewOf(explained(t, "", unfiltered), nil)
	assert.Len(t, v.Nodes, 2)
	assert.Equal(t, "prioritize", v.Facts[1].Name)
}

func TestViewsAreBounded(t *testing.T) {
	for _, c := range []struct {
		scored, filtered int
		passed, left     int
		about            string
	}{
		{600, 400, 600, 400, "1000 nodes"},
		{1500, 100, 900, 100, "1600 nodes; shown are 900 of 1500 that passed, and 100 of 100 that were filtered"},
		{1500, 700, 500, 500, "2200 nodes; shown are 500 of 1500 that passed, and 500 of 700 that were filtered"},
		{300, 2000, 300, 700, "2300 nodes; shown are 300 of 300 that passed, and 700 of 2000 that were filtered"},
	} {
		v := ViewOf(explained(t, "", answer(c.scored, c.filtered)), nil)
		assert.Equal(t, c.about, v.About)
		require.Len(t, v.Nodes, c.passed+c.left)
		assert.False(t, v.Nodes[c.passed-1].Filtered)
		assert.True(t, v.Nodes[c.passed].Filtered)
		assert.Equal(t, fmt.Sprintf("node-%04d", (9*c.scored+9)/10), v.Nodes[0].Name, "the best")
		assert.Equal(t, c.filtered, v.Filtered[0].Nodes, "all are counted")

		for _, went := range []string{"node-0000", fmt.Sprintf("full-%04d", c.filtered-1)} {
			// the worst score, and one that another scheduler chose
			v := ViewOf(explained(t, went, answer(c.scored, c.filtered)), nil)
			assert.Equal(t, c.about, v.About)
			require.Len(t, v.Nodes, c.passed+c.left)
			assert.True(t, slices.ContainsFunc(v.Nodes, func(n Node) bool { return n.Here && n.Name == went }), went)
		}
	}
}

func TestViewWithoutAnAnswer(t *testing.T) {
	e := explained(t, "node-1")
	v := ViewOf(e, e.Unanswered())
	assert.Contains(t, v.Problem,
		"There is no answer: no replica of Foresail () was asked about the pod shop/checkout lately")
	assert.Equal(t, "It went to node-1.", v.Sentence)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "null", "lists are empty")

	e.Pod, e.PodError = nil, "there is no such pod now"
	v = ViewOf(e, e.Unanswered())
	assert.Contains(t, v.Problem, "there is no such pod now")
	assert.Empty(t, v.Sentence, "the problem says it")
}

func TestNamesThatNoPodHas(t *testing.T) {
	for _, c := range []struct{ namespace, name, want string }{
		{"Shop", "checkout", `namespace: "Shop": must be a DNS label, such as shop`},
		{"shop", "../secrets", `name: "../secrets": must be a DNS subdomain, such as checkout-7d9c5`},
		{"", "", "namespace: \"\": must be a DNS label, such as shop\nname: \"\": must be a DNS subdomain, such as checkout-7d9c5"},
	} {
		_, err := New(types.NamespacedName{Namespace: c.namespace, Name: c.name}, now)
		require.EqualError(t, err, c.want)
		assert.True(t, errors.As(err, new(*pipeline.FieldError)))
	}
	_, err := New(types.NamespacedName{Namespace: "shop", Name: "web-0.canary"}, now)
	assert.NoError(t, err)
}

func unboundPod(name string, age time.Duration, message string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	pod.Status.Phase = corev1.PodPending
	if message != "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Message: message}}
	}
	return pod
}

// unbound lists the pods of a cluster. How it is asked is noted.
func unbound(pods ...runtime.Object) (*Unbound, *[]metav1.ListOptions) {
	cluster := clientset.NewClientset(pods...)
	asked := &[]metav1.ListOptions{}
	cluster.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		*asked = append(*asked, action.(clienttesting.ListActionImpl).ListOptions)
		return false, nil, nil
	})
	return &Unbound{Cluster: cluster, Now: func() time.Time { return now }}, asked
}

func TestPodsWithoutANode(t *testing.T) {
	u, asked := unbound(unboundPod("young", time.Minute, ""),
		unboundPod("old", time.Hour, "0/3 nodes are available: 3 Insufficient cpu."))
	list := u.List(t.Context())
	assert.Empty(t, list.Problem)
	assert.Equal(t, []UnboundPod{
		{"shop", "old", "60m", "0/3 nodes are available: 3 Insufficient cpu."},
		{"shop", "young", "60s", "the scheduler has not said why."},
	}, list.Pods)
	require.Len(t, *asked, 1)
	assert.Equal(t, "spec.nodeName=,status.phase=Pending", (*asked)[0].FieldSelector)
	assert.EqualValues(t, maxUnbound, (*asked)[0].Limit)
}

// A cluster is asked at most every ten seconds, and less often if it takes long.
func TestPodsAreListedSometimes(t *testing.T) {
	u, asked := unbound()
	at, took := now, time.Duration(0)
	u.Now = func() time.Time {
		at = at.Add(took)
		return at
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	u.List(ended) // is not kept: no one has waited for it
	for range 3 {
		u.List(t.Context())
	}
	assert.Len(t, *asked, 2)
	at, took = at.Add(unboundAge+time.Second), time.Second
	u.List(t.Context())
	took = 0
	at = at.Add(unboundAge + time.Second)
	u.List(t.Context())
	assert.Len(t, *asked, 3, "it takes long")
	at = at.Add(time.Minute)
	u.List(t.Context())
	assert.Len(t, *asked, 4)
}

func TestWhyPodsAreNotListed(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("ann may not"))
	for _, c := range []struct {
		failure error
		want    string
	}{
		{errors.New("no route to host"), "Pods cannot be listed: no route to host"},
		{forbidden, "You may not list the pods of all namespaces, so those without a node are not shown; one pod can be asked about by its name: "},
	} {
		u := &Unbound{Failure: c.failure, Now: func() time.Time { return now }}
		list := u.List(t.Context())
		assert.Contains(t, list.Problem, c.want)
		assert.NotNil(t, list.Pods, "the list is empty")
	}
}

package eventview

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var (
	now      = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	checkout = types.NamespacedName{Namespace: "shop", Name: "checkout"}
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func microAgo(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(now.Add(-d)) }

// about is an Event about checkout, as events.k8s.io writes it.
func about(reason string, since time.Duration) corev1.Event {
	return corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout." + reason, CreationTimestamp: ago(since)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "foresail.dev/v1alpha1", Kind: "PredictedMetric",
			Namespace: "shop", Name: "checkout"},
		Type: corev1.EventTypeNormal, Reason: reason, Message: "about " + reason, EventTime: microAgo(since),
	}
}

// answering returns a view of a cluster that answers lists of Events.
func answering(answer func(clienttesting.ListActionImpl) (*corev1.EventList, error)) *View {
	cluster := &fake.Clientset{}
	cluster.AddReactor("list", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		list, err := answer(action.(clienttesting.ListActionImpl))
		if err != nil {
			return true, nil, err
		}
		return true, list, nil
	})
	return &View{Cluster: cluster, Now: func() time.Time { return now }}
}

func of(events ...corev1.Event) *View {
	return answering(func(clienttesting.ListActionImpl) (*corev1.EventList, error) {
		return &corev1.EventList{Items: events}, nil
	})
}

func TestTheNewestComeFirst(t *testing.T) {
	again := about("Series", time.Hour)
	again.Series = &corev1.EventSeries{Count: 37, LastObservedTime: microAgo(time.Second)}
	old := about("OfTheOlderAPI", 0)
	old.EventTime, old.FirstTimestamp, old.LastTimestamp, old.Count = metav1.MicroTime{},
		ago(time.Hour), ago(2*time.Second), 5
	first := about("First", 0)
	first.EventTime, first.FirstTimestamp = metav1.MicroTime{}, ago(4*time.Second)
	bare := about("Bare", 5*time.Second)
	bare.EventTime = metav1.MicroTime{}
	other := about("OfAnotherGroup", time.Second)
	other.InvolvedObject.APIVersion = "example.com/v1"

	list := of(bare, about("Once", 3*time.Second), first, again, other, old).List(t.Context(), "PredictedMetric",
		checkout)
	require.Empty(t, list.Problem)
	event := func(reason string, since time.Duration, count int32) Event {
		return Event{Time: now.Add(-since), Type: "Normal", Reason: reason, Message: "about " + reason, Count: count}
	}
	assert.Equal(t, []Event{
		event("Series", time.Second, 37), event("OfTheOlderAPI", 2*time.Second, 5), event("Once", 3*time.Second, 1),
		event("First", 4*time.Second, 1), event("Bare", 5*time.Second, 1),
	}, list.Events)
	assert.Equal(t, 5, list.All)
	assert.False(t, list.Cut)
	assert.Equal(t, 5.0, list.Rest)
}

// The API server is asked for the Events of the object alone, where they are.
func TestWhatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		kind      string
		object    types.NamespacedName
		namespace string
		fields    string
	}{
		{"PredictedMetric", checkout, "shop",
			"involvedObject.kind=PredictedMetric,involvedObject.name=checkout,involvedObject.namespace=shop"},
		{"WorkerPool", types.NamespacedName{Name: "workers"}, "default",
			"involvedObject.kind=WorkerPool,involvedObject.name=workers,involvedObject.namespace="},
		{"WorkerPool", types.NamespacedName{Name: "a,b=c"}, "default",
			`involvedObject.kind=WorkerPool,involvedObject.name=a\,b\=c,involvedObject.namespace=`},
	} {
		asked := 0
		v := answering(func(a clienttesting.ListActionImpl) (*corev1.EventList, error) {
			asked++
			assert.Equal(t, c.namespace, a.GetNamespace())
			assert.Equal(t, c.fields, a.ListOptions.FieldSelector)
			assert.EqualValues(t, pageSize, a.ListOptions.Limit)
			return &corev1.EventList{}, nil
		})
		list := v.List(t.Context(), c.kind, c.object)
		assert.Empty(t, list.Problem)
		assert.NotNil(t, list.Events)
		assert.Equal(t, 1, asked)
	}
}

// What is read and what is answered are bounded. Pages come in the order in which Events began.
func TestAnswersAreBounded(t *testing.T) {
	for pages, cut := range map[int]bool{2: false, maxPages: false, maxPages + 1: true} {
		asked := 0
		v := answering(func(a clienttesting.ListActionImpl) (*corev1.EventList, error) {
			list := &corev1.EventList{}
			assert.Equal(t, asked > 0, a.ListOptions.Continue != "")
			for i := range pageSize {
				e := about(fmt.Sprintf("R%d", asked*pageSize+i),
					time.Hour-time.Duration(asked*pageSize+i)*time.Millisecond)
				e.Message = strings.Repeat("é", maxText)
				list.Items = append(list.Items, e)
			}
			if asked++; asked < pages {
				list.Continue = "next"
			}
			return list, nil
		})
		list := v.List(t.Context(), "PredictedMetric", checkout)
		read := min(pages, maxPages)
		assert.Equal(t, read, asked)
		assert.Equal(t, read*pageSize, list.All)
		assert.Equal(t, cut, list.Cut)
		require.Len(t, list.Events, maxEvents)
		assert.Equal(t, fmt.Sprintf("R%d", read*pageSize-1), list.Events[0].Reason)
		assert.LessOrEqual(t, len(list.Events[0].Message), maxText)
		assert.True(t, utf8.ValidString(list.Events[0].Message))
		assert.True(t, strings.HasSuffix(list.Events[0].Message, "é…"))
	}
}

// A cluster whose Events take long to read is asked less often.
func TestSlowClustersAreAskedLess(t *testing.T) {
	at := now
	v := answering(func(clienttesting.ListActionImpl) (*corev1.EventList, error) {
		at = at.Add(2 * time.Second)
		return &corev1.EventList{}, nil
	})
	v.Now = func() time.Time { return at }
	assert.Equal(t, 40.0, v.List(t.Context(), "PredictedMetric", checkout).Rest)
}

func TestProblemsAreSaid(t *testing.T) {
	failing := func(err error) *View {
		return answering(func(clienttesting.ListActionImpl) (*corev1.EventList, error) { return nil, err })
	}
	forbidden := failing(apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no")))
	for _, c := range []struct {
		view   *View
		object types.NamespacedName
		want   string
	}{
		{forbidden, checkout, "You may not read Events, which takes the right list of events in namespace shop: events is forbidden: no"},
		{forbidden, types.NamespacedName{Name: "workers"},
			"You may not read Events, which takes the right list of events in namespace default: events is forbidden: no"},
		{failing(errors.New("no route")), checkout, "Events cannot be read: no route"},
		{&View{Failure: errors.New("no kubeconfig")}, checkout, "Events cannot be read: no kubeconfig"},
	} {
		list := c.view.List(t.Context(), "PredictedMetric", c.object)
		assert.Equal(t, c.want, list.Problem)
		assert.NotNil(t, list.Events)
		assert.GreaterOrEqual(t, list.Rest, 5.0)
	}
}

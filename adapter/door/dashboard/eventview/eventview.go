// Package eventview answers what the page of `foresail dashboard` asks of Kubernetes Events: from
// the cluster, with the rights of the user, by the API that kubectl describe reads.
package eventview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	// maxEvents and maxText bound an answer: events, and the bytes of a text. What Foresail writes is shorter.
	maxEvents = 20
	maxText   = 1024
	// pageSize and maxPages bound what is read. The newest Events come last.
	pageSize = 500
	maxPages = 4
	// shortestRest is how long the page waits at least until it asks again. The API server keeps no
	// index of Events, and reads all of a namespace: one that takes long is read a twentieth of
	// the time.
	shortestRest = 5 * time.Second
	readingRest  = 20
)

// View answers. It is safe for concurrent use.
type View struct {
	Cluster kubernetes.Interface
	Failure error // why there is no cluster to read
	Now     func() time.Time
}

// List is the answer about one object. Problem says why there is none.
type List struct {
	Problem string  `json:"problem,omitempty"`
	Events  []Event `json:"events"` // the newest first, maxEvents at most
	All     int     `json:"all"`    // how many there are
	Cut     bool    `json:"cut"`    // there are more than could be read: the newest may be missing
	Rest    float64 `json:"restSeconds"`
}

// Event is something that happened, once or several times.
type Event struct {
	Time    time.Time `json:"time"` // of the last time
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count"`
}

// List returns the Events about an object of a kind of Foresail. The namespace is "" for kinds that have none.
func (v *View) List(ctx context.Context, kind string, object types.NamespacedName) List {
	out := List{Events: []Event{}, Rest: shortestRest.Seconds()}
	// Events about objects without a namespace are in this one, independent of their writer.
	namespace := cmp.Or(object.Namespace, metav1.NamespaceDefault)
	if v.Failure != nil {
		out.Problem = problem(v.Failure, namespace)
		return out
	}
	began := v.Now()
	found, cut, err := v.read(ctx, namespace, fields.AndSelectors(
		fields.OneTermEqualSelector("involvedObject.kind", kind),
		fields.OneTermEqualSelector("involvedObject.name", object.Name),
		fields.OneTermEqualSelector("involvedObject.namespace", object.Namespace),
	))
	out.Rest = max(shortestRest, readingRest*v.Now().Sub(began)).Seconds()
	if err != nil {
		out.Problem = problem(err, namespace)
		return out
	}
	slices.SortStableFunc(found, func(a, b Event) int { return b.Time.Compare(a.Time) })
	out.All, out.Cut = len(found), cut
	out.Events = append(out.Events, found[:min(maxEvents, len(found))]...)
	return out
}

// read returns what a selector finds, and whether there is more.
func (v *View) read(ctx context.Context, namespace string, of fields.Selector) (found []Event, more bool, err error) {
	options := metav1.ListOptions{FieldSelector: of.String(), Limit: pageSize}
	for range maxPages {
		list, err := v.Cluster.CoreV1().Events(namespace).List(ctx, options)
		if err != nil {
			return nil, false, err
		}
		for i := range list.Items {
			if e := &list.Items[i]; isForesails(e) {
				found = append(found, eventOf(e))
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return found, false, nil
		}
	}
	return found, true, nil
}

// isForesails returns whether an Event is about a kind of Foresail, rather than one of the same name.
func isForesails(e *corev1.Event) bool {
	of, err := schema.ParseGroupVersion(e.InvolvedObject.APIVersion)
	return err == nil && of.Group == v1alpha1.GroupVersion.Group
}

// eventOf reads what both APIs of Events may have written.
func eventOf(e *corev1.Event) Event {
	out := Event{Type: clip(e.Type), Reason: clip(e.Reason), Message: clip(e.Message), Count: max(1, e.Count),
		Time: e.CreationTimestamp.Time}
	times := []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time}
	if e.Series != nil {
		out.Count = max(1, e.Series.Count)
		times = slices.Insert(times, 0, e.Series.LastObservedTime.Time)
	}
	if i := slices.IndexFunc(times, func(t time.Time) bool { return !t.IsZero() }); i >= 0 {
		out.Time = times[i]
	}
	return out
}

// clip shortens a text to maxText.
func clip(s string) string {
	const more = "…"
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText-len(more)], "") + more
}

// problem says why the Events of a namespace are not shown.
func problem(err error, namespace string) string {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return fmt.Sprintf("You may not read Events, which takes the right list of events in namespace %s: %v",
			namespace, err)
	}
	return "Events cannot be read: " + err.Error()
}

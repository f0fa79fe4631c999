package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/journal"
)

// recordEvents records Kubernetes Events for the events of a cycle and for a changed decision.
func recordEvents(to events.EventRecorder, pool *v1alpha1.WorkerPool, cycle nodepool.CycleReport, changed bool) {
	if d := cycle.Decision; changed && d.Reason != "" {
		to.Eventf(pool, nil, corev1.EventTypeNormal, string(d.Reason), string(d.Step), "%s", clip(d.Message))
	}
	for _, group := range grouped(cycle.Events) {
		e := group[0]
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		to.Eventf(pool, nil, kind, string(e.Reason), actionOfEvent(e), "%s", clip(noteOf(group)))
	}
}

// grouped groups the events of a cycle by reason and action: hundreds of nodes may be launched at once.
func grouped(list []journal.Event) [][]journal.Event {
	var out [][]journal.Event
	for _, e := range list {
		same := func(g []journal.Event) bool {
			return e.Action != "" && g[0].Reason == e.Reason && g[0].Action == e.Action && g[0].Warning == e.Warning
		}
		if at := slices.IndexFunc(out, same); at >= 0 {
			out[at] = append(out[at], e)
		} else {
			out = append(out, []journal.Event{e})
		}
	}
	return out
}

// noteOf returns the text of an Event about one or more events.
func noteOf(group []journal.Event) string {
	texts := make([]string, len(group))
	for i, e := range group {
		texts[i] = e.Message
	}
	text := strings.Join(texts, "; ")
	if len(group) > 1 {
		text = fmt.Sprintf("%d times: %s", len(group), text)
	}
	return text
}

// actionOfEvent returns the action of an Event, with the instance or node. Kubernetes counts Events with the same
// reason and action as repetitions of the first one, and drops their texts.
func actionOfEvent(e journal.Event) string {
	const limit = 128 // characters, of the API
	parts := slices.DeleteFunc([]string{cmp.Or(e.Action, string(e.Reason)), cmp.Or(e.Instance, e.Node)},
		func(s string) bool { return s == "" })
	action := strings.Join(parts, "/")
	return action[:min(limit, len(action))]
}

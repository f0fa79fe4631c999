package remotewrite

import (
	"fmt"
	"net/http"
	"strings"
)

// result is what became of a sample.
type result int

const (
	taken              result = iota
	unselected                // nobody wants the metric, or series with such labels
	noPodLabel                // its metric is wanted, but it does not say which pod it is of
	unknownPod                // its pod is in no fleet that wants the metric
	stale                     // a marker that the series ended
	late                      // a counter's reading that is no later than one that was taken
	notFinite                 // NaN or infinite
	invalidLabels             // from here on refused
	duplicateSeries           // another series is read of the pod
	tooOld                    // too far behind the newest of the instance
	fromFuture                // too far ahead of the clock
	ambiguousNamespace        // pods of that name are in several namespaces, and it does not say which it is of
	results
)

// resultNames are the values of the metric's label.
var resultNames = [results]string{
	"taken", "unselected", "no_pod_label", "unknown_pod", "stale_marker", "late", "not_finite",
	"invalid_labels", "duplicate_series", "too_old", "from_future", "ambiguous_namespace",
}

// refused tells whether the sender hears of it.
func (r result) refused() bool { return r >= invalidLabels }

// refusal is an answer other than that a request was taken.
type refusal struct {
	code   int
	reason string
}

func (r *refusal) Error() string { return r.reason }

// tally is what became of the samples of a request.
type tally struct {
	of       [results]int
	examples [results]error // of what was refused
}

func (t *tally) add(r result, samples int) { t.of[r] += samples }

// refuse adds samples that are refused for a reason.
func (t *tally) refuse(r result, samples int, why error) {
	t.of[r] += samples
	if t.examples[r] == nil {
		t.examples[r] = why
	}
}

// verdict returns what the sender must be told; nil if nothing was refused.
func (t *tally) verdict() error {
	var parts []string
	for r := range results {
		if r.refused() && t.examples[r] != nil {
			parts = append(parts, fmt.Sprintf("%s: %d samples, such as: %v", resultNames[r], t.of[r], t.examples[r]))
		}
	}
	if parts == nil {
		return nil
	}
	return &refusal{code: http.StatusBadRequest, reason: "refused, while everything else was taken: " + strings.Join(parts, "; ")}
}

package remotewrite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// result is the outcome of a sample.
type result int

const (
	taken            result = iota
	unselected              // no subscription has the metric and the labels
	noNamespaceLabel        // its metric is desired, but it belongs to no namespace
	noPodLabel              // its metric is desired, but it has no pod label
	unknownPod              // no fleet of the namespace with that metric has its pod
	stale                   // a marker that the series ended
	late                    // a counter reading no later than the last one taken
	notFinite               // NaN or infinite
	wrongType               // its sender declares another type than the spec
	invalidLabels           // rejected, like all below
	unsupportedType         // a delta, a histogram or a summary
	duplicateSeries         // the pod has several series
	tooOld                  // too far behind the newest of the instance
	fromFuture              // too far ahead of the clock
	results
)

// resultNames are the values of the metric's label.
var resultNames = [results]string{
	"taken", "unselected", "no_namespace_label", "no_pod_label", "unknown_pod", "stale_marker", "late",
	"not_finite", "wrong_type",
	"invalid_labels", "unsupported_type", "duplicate_series", "too_old", "from_future",
}

// rejected reports whether the answer reports the sample.
func (r result) rejected() bool { return r >= invalidLabels }

// tally is the results of the samples of a request.
type tally struct {
	of       [results]int
	examples [results]error // of the rejected samples
}

func (t *tally) add(r result, samples int) { t.of[r] += samples }

// reject adds samples that are rejected for a reason.
func (t *tally) reject(r result, samples int, why error) {
	t.of[r] += samples
	if t.examples[r] == nil {
		t.examples[r] = why
	}
}

// reasons describes the rejections, "" if there are none.
func (t *tally) reasons() string {
	var parts []string
	for r := range results {
		if r.rejected() && t.examples[r] != nil {
			parts = append(parts, fmt.Sprintf("%s: %d samples, such as: %v", resultNames[r], t.of[r], t.examples[r]))
		}
	}
	if parts == nil {
		return ""
	}
	return "rejected, while everything else was taken: " + strings.Join(parts, "; ")
}

// receipt records the results of the samples of one request.
type receipt struct {
	received time.Time
	now      int64 // received, in ms
	tally    tally
	rejected []int32           // ordinals of samples
	scratch  []pipeline.Sample // for the samples of one instance
}

// reject records that the answer reports a sample as rejected.
func (r *receipt) reject(ordinal int32) { r.rejected = append(r.rejected, ordinal) }

// rejections returns the number of samples that were rejected, by however many subscriptions.
func (r *receipt) rejections() int {
	slices.Sort(r.rejected)
	r.rejected = slices.Compact(r.rejected)
	return len(r.rejected)
}

func (r *receipt) reset() { r.tally, r.rejected = tally{}, r.rejected[:0] }

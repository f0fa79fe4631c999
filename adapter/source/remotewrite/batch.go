package remotewrite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// reading is a sample for one subscription.
type reading struct {
	sample
	member   *member
	ordinal  int32  // of the sample in the request
	identity []byte // of its series
}

// place is where a reading belongs, and where it is. It has no pointers: to sort readings themselves would keep the garbage collector busy.
type place struct {
	order uint64 // of the member
	t     int64  // ms
	at    int
}

// batch is one request on its way to the subscriptions. It is reused.
type batch struct {
	source   *Source
	received time.Time
	now      int64 // ms
	tally    tally

	decoder    decoder
	ordinal    int32
	members    []*member
	readings   []reading
	places     []place
	sorted     []reading
	identities []byte
	rejected   []int32 // ordinals
	samples    []pipeline.Sample
}

var _ acquaintance = (*batch)(nil)

func newBatch(s *Source) *batch {
	return &batch{source: s, decoder: decoder{options: &s.options, podLabels: s.index.podLabels}}
}

// desired implements consumer.
func (b *batch) desired(metric string, samples int) bool {
	if b.source.index.wants(metric) {
		return true
	}
	b.tally.add(unselected, samples)
	return false
}

// invalid implements consumer.
func (b *batch) invalid(as result, reason error, samples int) {
	b.tally.reject(as, samples, reason)
	for range samples {
		b.reject(b.ordinal)
		b.ordinal++
	}
}

// add implements consumer.
func (b *batch) add(l labels, samples []sample) {
	b.members = b.members[:0]
	tenancy := &b.source.options.Tenancy
	namespace := tenancy.Namespace(l.get(tenancy.NamespaceLabel))
	why := b.source.index.find(namespace, l, func(of []*member) {
		for _, m := range of {
			if m.subscription.config.matches(l) {
				b.members = append(b.members, m)
			} else {
				m.subscription.other.note(l)
			}
		}
	})
	if why == taken && len(b.members) == 0 {
		why = unselected
	}
	if len(b.members) == 0 {
		b.ordinal += int32(len(samples))
		b.tally.add(why, len(samples))
		return
	}
	from := len(b.identities)
	b.identities = l.appendIdentity(b.identities)
	identity := b.identities[from:]
	if written := b.decoder.written; written != nil {
		b.source.index.remember(written, identity, b.members, namespace, l, b.now)
	}
	b.give(b.members, identity, samples)
}

// known implements acquaintance.
func (b *batch) known(written []byte) *known { return b.source.index.recall(written) }

// addKnown implements acquaintance.
func (b *batch) addKnown(s *known, samples []sample) { b.give(s.members, s.identity, samples) }

// give adds the samples of a series to what its members will be given.
func (b *batch) give(members []*member, identity []byte, samples []sample) {
	for _, m := range members {
		for i, x := range samples {
			b.places = append(b.places, place{m.order, x.t, len(b.readings)})
			b.readings = append(b.readings, reading{sample: x, member: m, ordinal: b.ordinal + int32(i), identity: identity})
		}
	}
	b.ordinal += int32(len(samples))
}

// reject records that the answer reports a sample as rejected.
func (b *batch) reject(ordinal int32) { b.rejected = append(b.rejected, ordinal) }

// judge records the result of a reading.
func (b *batch) judge(x *reading, r result, k *track, u *subscription) {
	if !r.rejected() {
		b.tally.add(r, 1)
		return
	}
	b.reject(x.ordinal)
	if b.tally.examples[r] != nil {
		b.tally.add(r, 1)
		return
	}
	b.tally.reject(r, 1, describe(x, r, k, u))
}

func describe(x *reading, r result, k *track, u *subscription) error {
	whose := " of pod " + x.member.pod
	if u.config.Whole {
		whose = ""
	}
	switch r {
	case duplicateSeries:
		return fmt.Errorf("%s%s: %w", u.config.Metric, whose, k.duplicate(x.t, x.identity))
	case tooOld:
		return fmt.Errorf("%s%s: %s behind the newest sample", u.config.Metric, whose, time.Duration(k.newest-x.t)*time.Millisecond)
	}
	return fmt.Errorf("%s%s: %w", u.config.Metric, whose, k.failure)
}

// apply gives the decoded readings to the subscriptions.
func (b *batch) apply() {
	b.sort()
	for rest := b.sorted; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].member == rest[0].member {
			n++
		}
		rest[0].member.subscription.take(rest[:n], b)
		rest = rest[n:]
	}
}

// sort has the readings of each member one after the other, in order of time, and as they came if that is the same.
func (b *batch) sort() {
	slices.SortFunc(b.places, func(x, y place) int {
		return cmp.Or(cmp.Compare(x.order, y.order), cmp.Compare(x.t, y.t), cmp.Compare(x.at, y.at))
	})
	for i := range b.places {
		b.sorted = append(b.sorted, b.readings[b.places[i].at])
	}
}

// rejections returns how many samples were rejected, by however many subscriptions.
func (b *batch) rejections() int {
	slices.Sort(b.rejected)
	b.rejected = slices.Compact(b.rejected)
	return len(b.rejected)
}

// large returns whether b has grown too large to be kept.
func (b *batch) large() bool {
	d := &b.decoder
	return cap(b.identities)+cap(d.kept)+cap(d.otlp.points) > keptBytes || cap(b.readings)+cap(b.samples)+cap(b.rejected)+cap(d.samples)+cap(d.symbols) > keptItems
}

// keptItems is the maximum number of items in the buffers that are kept.
const keptItems = 64 << 10

// reset forgets a request.
func (b *batch) reset() {
	b.decoder.reset()
	clear(b.members[:cap(b.members)])
	clear(b.readings)
	clear(b.sorted)
	b.tally, b.ordinal = tally{}, 0
	b.members, b.readings, b.identities, b.rejected = b.members[:0], b.readings[:0], b.identities[:0], b.rejected[:0]
	b.places, b.sorted = b.places[:0], b.sorted[:0]
}

// result is the outcome of a sample.
type result int

const (
	taken            result = iota
	unselected              // no subscription has the metric and the labels
	noNamespaceLabel        // its metric is desired, but it is of nobody's namespace
	noPodLabel              // its metric is desired, but it has no pod label
	unknownPod              // no fleet of the namespace with that metric has its pod
	stale                   // a marker that the series ended
	late                    // a counter reading no later than the last one taken
	notFinite               // NaN or infinite
	wrongType               // its sender says that it is of another type than the spec
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

// rejected returns whether the answer reports the sample.
func (r result) rejected() bool { return r >= invalidLabels }

// rejection is an answer that is not a success.
type rejection struct {
	code   int
	reason string
}

func (r *rejection) Error() string { return r.reason }

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

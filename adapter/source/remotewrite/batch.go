package remotewrite

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// reading is a sample for one subscription.
type reading struct {
	sample
	member   *member
	ordinal  int32 // of the sample in the request
	from, to int   // its series' identity
}

// batch is one request on its way to the subscriptions. It is used again.
type batch struct {
	source *Source
	heard  time.Time
	now    int64 // ms
	tally  tally

	decoder    decoder
	ordinal    int32
	members    []*member
	readings   []reading
	identities []byte
	refused    []int32 // ordinals
	samples    []pipeline.Sample
}

var _ selector = (*batch)(nil)

func newBatch(s *Source) *batch {
	return &batch{source: s, decoder: decoder{options: &s.options}}
}

// wanted implements selector.
func (b *batch) wanted(metric string, samples int) bool {
	if b.source.index.wants(metric) {
		return true
	}
	b.tally.add(unselected, samples)
	return false
}

// invalid implements selector.
func (b *batch) invalid(reason error, samples int) {
	b.tally.refuse(invalidLabels, samples, reason)
	for range samples {
		b.refuse(b.ordinal)
		b.ordinal++
	}
}

// add implements selector.
func (b *batch) add(l labels, samples []sample) {
	first := b.ordinal
	b.ordinal += int32(len(samples))
	b.members = b.members[:0]
	why := unselected
	b.source.index.find(l.get(metricName), func(k *keyed) {
		of, r := k.of(l)
		for _, m := range of {
			if m.subscription.config.matches(l) {
				b.members = append(b.members, m)
			} else {
				m.subscription.other.note(l)
			}
		}
		if r != taken {
			why = r
		}
	})
	if len(b.members) == 0 {
		b.miss(why, l, len(samples), first)
		return
	}
	from := len(b.identities)
	b.identities = l.appendIdentity(b.identities)
	for _, m := range b.members {
		for i, x := range samples {
			b.readings = append(b.readings, reading{sample: x, member: m, ordinal: first + int32(i), from: from, to: len(b.identities)})
		}
	}
}

// miss takes note of a series that is nobody's.
func (b *batch) miss(why result, l labels, samples int, first int32) {
	if !why.refused() {
		b.tally.add(why, samples)
		return
	}
	b.tally.refuse(why, samples, fmt.Errorf("%s: pods of that name are in several namespaces", shorten(l.String())))
	for i := range samples {
		b.refuse(first + int32(i))
	}
}

func (b *batch) identity(x *reading) []byte { return b.identities[x.from:x.to] }

// refuse notes that the sender is told that a sample was refused.
func (b *batch) refuse(ordinal int32) { b.refused = append(b.refused, ordinal) }

// judge takes note of what became of a reading.
func (b *batch) judge(x *reading, r result, k *track, u *subscription) {
	if !r.refused() {
		b.tally.add(r, 1)
		return
	}
	b.refuse(x.ordinal)
	if b.tally.examples[r] != nil {
		b.tally.add(r, 1)
		return
	}
	b.tally.refuse(r, 1, describe(x, r, k, u))
}

func describe(x *reading, r result, k *track, u *subscription) error {
	if r == tooOld {
		return fmt.Errorf("%s of pod %s: %s behind the newest sample", u.config.Metric, x.member.pod, time.Duration(k.newest-x.t)*time.Millisecond)
	}
	return fmt.Errorf("%s of pod %s: %w", u.config.Metric, x.member.pod, k.failure)
}

// apply gives what has been decoded to the subscriptions.
func (b *batch) apply() {
	slices.SortStableFunc(b.readings, func(x, y reading) int {
		return cmp.Or(cmp.Compare(x.member.order, y.member.order), cmp.Compare(x.t, y.t))
	})
	for rest := b.readings; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].member == rest[0].member {
			n++
		}
		rest[0].member.subscription.take(rest[:n], b)
		rest = rest[n:]
	}
}

// written returns how many samples were not refused.
func (b *batch) written() int {
	slices.Sort(b.refused)
	b.refused = slices.Compact(b.refused)
	return b.decoder.seen.samples - len(b.refused)
}

// large tells whether a request has made b larger than is worth keeping.
func (b *batch) large() bool {
	d := &b.decoder
	return cap(b.identities)+cap(d.kept) > keptBytes || cap(b.readings)+cap(b.samples)+cap(b.refused)+cap(d.samples)+cap(d.symbols) > keptItems
}

// keptItems is how many of whatever a request may have had that is kept.
const keptItems = 64 << 10

// reset forgets a request.
func (b *batch) reset() {
	b.decoder.reset()
	clear(b.members[:cap(b.members)])
	clear(b.readings)
	b.tally, b.ordinal = tally{}, 0
	b.members, b.readings, b.identities, b.refused = b.members[:0], b.readings[:0], b.identities[:0], b.refused[:0]
}

package remotewrite

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
)

// batch is one request on its way to the subscriptions. It is reused.
type batch struct {
	receipt

	index   *index[*member]
	decoder *decode.Decoder
	ordinal int32                  // of the next sample
	cached  *cachedSeries[*member] // that Recall found last

	members    []*member
	readings   []reading
	places     []place
	sorted     []reading
	identities []byte
}

var _ decode.CachingConsumer = (*batch)(nil)

// place is where a reading belongs, and where it is. It has no pointers: sorting the readings themselves would
// keep the garbage collector busy.
type place struct {
	order uint64 // of the member
	t     int64  // ms
	at    int
}

func newBatch(x *index[*member], l decode.Limits) *batch {
	return &batch{index: x, decoder: decode.New(l, x.tenancy, x.podLabels)}
}

// begin starts a request.
func (b *batch) begin(received time.Time) { b.received, b.now = received, received.UnixMilli() }

// Desired implements decode.Consumer.
func (b *batch) Desired(metric string, samples int) bool {
	if b.index.isSubscribed(metric) {
		return true
	}
	b.tally.add(unselected, samples)
	return false
}

// Invalid implements decode.Consumer.
func (b *batch) Invalid(reason error, samples int) { b.rejectSeries(invalidLabels, reason, samples) }

// Unsupported implements decode.Consumer.
func (b *batch) Unsupported(reason error, samples int) {
	b.rejectSeries(unsupportedType, reason, samples)
}

func (b *batch) rejectSeries(as result, reason error, samples int) {
	b.tally.reject(as, samples, reason)
	for range samples {
		b.reject(b.ordinal)
		b.ordinal++
	}
}

// Add implements decode.Consumer.
func (b *batch) Add(l decode.Labels, samples []decode.Sample, written []byte) {
	b.members = b.members[:0]
	why := b.index.find(l, func(of []*member) {
		for _, m := range of {
			if m.subscription.selects(l) {
				b.members = append(b.members, m)
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
	b.identities = l.AppendIdentity(b.identities)
	identity := b.identities[from:]
	if written != nil {
		b.index.cache(written, identity, b.members, l, b.now)
	}
	b.addReadings(b.members, identity, samples)
}

// Recall implements decode.CachingConsumer.
func (b *batch) Recall(written []byte) bool {
	b.cached = b.index.recall(written)
	return b.cached != nil
}

// AddRecalled implements decode.CachingConsumer.
func (b *batch) AddRecalled(samples []decode.Sample) {
	b.addReadings(b.cached.members, b.cached.identity, samples)
}

// addReadings adds the samples of a series for each of its members.
func (b *batch) addReadings(members []*member, identity []byte, samples []decode.Sample) {
	for _, m := range members {
		for i, x := range samples {
			b.places = append(b.places, place{m.order, x.T, len(b.readings)})
			b.readings = append(b.readings, reading{Sample: x, member: m, ordinal: b.ordinal + int32(i),
				identity: identity})
		}
	}
	b.ordinal += int32(len(samples))
}

// apply passes the decoded readings to the subscriptions.
func (b *batch) apply() {
	b.sort()
	for rest := b.sorted; len(rest) > 0; {
		m, n := rest[0].member, 1
		for n < len(rest) && rest[n].member == m {
			n++
		}
		m.subscription.take(m, rest[:n], &b.receipt)
		rest = rest[n:]
	}
}

// sort orders the readings by member, then by time, then as they came.
func (b *batch) sort() {
	slices.SortFunc(b.places, func(x, y place) int {
		return cmp.Or(cmp.Compare(x.order, y.order), cmp.Compare(x.t, y.t), cmp.Compare(x.at, y.at))
	})
	for i := range b.places {
		b.sorted = append(b.sorted, b.readings[b.places[i].at])
	}
}

// The maximum size of the buffers of a batch that is kept for the next request. Few requests are larger.
const (
	maxPooledBytes = 4 << 20
	maxPooledItems = 64 << 10
)

// large reports whether b has grown too large to be kept.
func (b *batch) large() bool {
	bytes, items := b.decoder.Capacity()
	return cap(b.identities)+bytes > maxPooledBytes ||
		cap(b.readings)+cap(b.scratch)+cap(b.rejected)+items > maxPooledItems
}

// reset drops a request.
func (b *batch) reset() {
	b.decoder.Reset()
	b.receipt.reset()
	clear(b.members[:cap(b.members)])
	clear(b.readings)
	clear(b.sorted)
	b.ordinal, b.cached = 0, nil
	b.members, b.readings, b.identities = b.members[:0], b.readings[:0], b.identities[:0]
	b.places, b.sorted = b.places[:0], b.sorted[:0]
}

package remotewrite

import "slices"

const (
	// maxKnownBytes is how many bytes of labels a series has at most that is known.
	maxKnownBytes = 4 << 10
	// knownFor is for how long one is not replaced by another of its pod (ms): two that take turns would be found anew each time.
	knownFor = int64(60_000)
)

// known is a series of remote write 1.0 whose members have been found before. Senders write the labels of a series in the same way in each
// request, so these are decoded and checked once. It does not change.
type known struct {
	labels   string // as written, one after the other
	identity []byte
	members  []*member
	since    int64 // ms
}

// recall returns the series whose labels are written so, nil if it is not known.
func (x *index) recall(written []byte) *known {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.known[string(written)]
}

// remember keeps a series of a namespace if its members are all that may take it.
func (x *index) remember(written, identity []byte, members []*member, namespace string, l labels, now int64) {
	x.mu.RLock()
	of := x.onlyTakers(namespace, l, members, now)
	x.mu.RUnlock()
	if of == nil {
		return
	}
	s := &known{string(written), slices.Clone(identity), slices.Clone(members), now}
	x.mu.Lock()
	defer x.mu.Unlock()
	if of = x.onlyTakers(namespace, l, members, now); of == nil {
		return // they have changed meanwhile
	}
	x.forget(of)
	of.known = s
	x.known[s.labels] = s
}

// onlyTakers returns the takers of a series if they consist of these members, and none of another pod label may take it as well. It is nil as
// long as another series of the pod is to stay known.
func (x *index) onlyTakers(namespace string, l labels, members []*member, now int64) *takers {
	g := x.groups[l.get(metricName)]
	if g == nil || g.tenants[namespace] == nil || len(g.tenants[namespace].keyed) != 1 {
		return nil
	}
	var of *takers
	for _, k := range g.tenants[namespace].keyed {
		of = k.takers[l.get(k.podLabel)]
	}
	if of == nil || !slices.Equal(of.members, members) || of.known != nil && now-of.known.since < knownFor {
		return nil
	}
	return of
}

// forget has the next series of a pod looked up again. The caller holds mu.
func (x *index) forget(of *takers) {
	if of.known != nil {
		delete(x.known, of.known.labels)
		of.known = nil
	}
}

// forgetAll does so for all pods that a namespace has of a metric.
func (x *index) forgetAll(t *tenant) {
	for _, k := range t.keyed {
		for _, of := range k.takers {
			x.forget(of)
		}
	}
}

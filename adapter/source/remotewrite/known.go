package remotewrite

import "slices"

// known is a series of remote write 1.0 whose members have been found before. Senders write the labels of a series in the same way in each
// request, so these are decoded and checked once. It does not change.
type known struct {
	labels   string // as written, one after the other
	identity []byte
	members  []*member
}

// recall returns the series whose labels are written so, nil if it is not known.
func (x *index) recall(written []byte) *known {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.known[string(written)]
}

// remember keeps a series of a namespace, in place of the pod's one before, if its members are all that may take it.
func (x *index) remember(s *known, namespace string, l labels) {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.groups[l.get(metricName)]
	if g == nil || len(g.keyed) != 1 {
		return
	}
	t := g.keyed[0].tenants[namespace]
	if t == nil {
		return
	}
	if all := t.takers[l.get(g.keyed[0].podLabel)]; all != nil && slices.Equal(all.members, s.members) {
		x.forget(all)
		all.known = s
		x.known[s.labels] = s
	}
}

// forget has the next series of a pod looked up again. The caller holds mu.
func (x *index) forget(of *takers) {
	if of.known != nil {
		delete(x.known, of.known.labels)
		of.known = nil
	}
}

// forgetAll does so for all pods of a metric.
func (x *index) forgetAll(g *group) {
	for _, k := range g.keyed {
		for _, t := range k.tenants {
			for _, of := range t.takers {
				x.forget(of)
			}
		}
	}
}

package hpa

// history is what the controller remembers of one HPA.
type history struct {
	wanted     []moment // what metrics asked for, before anything held it back, oldest first
	ups, downs []moment // by how much the replicas were raised and lowered, in any order
}

type moment struct {
	t int64
	n int
}

// change returns by how much the replicas have been changed within a period, together.
func (h *history) change(now int64, periodSeconds int32) int {
	since := now - int64(periodSeconds)*1000
	return sumAfter(h.ups, since) - sumAfter(h.downs, since)
}

func sumAfter(all []moment, t int64) int {
	total := 0
	for _, m := range all {
		if m.t > t {
			total += m.n
		}
	}
	return total
}

// rose and fell remember a change. Either takes the place of one of its direction that no policy of that direction looks back
// to any more, though one of the other direction might.
func (h *history) rose(now int64, by int, r *rules) { h.ups = remember(h.ups, moment{now, by}, r) }
func (h *history) fell(now int64, by int, r *rules) { h.downs = remember(h.downs, moment{now, by}, r) }

func remember(all []moment, m moment, r *rules) []moment {
	oldest := m.t - r.lookBack()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].t < oldest {
			all[i] = m
			return all
		}
	}
	return append(all, m)
}

// forget drops what was wanted before a time.
func (h *history) forget(before int64) {
	n := 0
	for n < len(h.wanted) && h.wanted[n].t < before {
		n++
	}
	h.wanted = append(h.wanted[:0], h.wanted[n:]...)
}

package hpa

// history is what the controller remembers of one HPA.
type history struct {
	wanted  []moment // what metrics asked for, before anything held it back, oldest first
	changes []moment // by how much the replicas were changed, oldest first
}

type moment struct {
	t int64
	n int
}

// change returns by how much the replicas have been changed within a period, together.
func (h *history) change(now int64, periodSeconds int32) int {
	total := 0
	for _, c := range h.changes {
		if c.t > now-int64(periodSeconds)*1000 {
			total += c.n
		}
	}
	return total
}

// forget drops what is older than anybody asks for.
func (h *history) forget(before int64) {
	h.wanted, h.changes = since(h.wanted, before), since(h.changes, before)
}

func since(all []moment, t int64) []moment {
	n := 0
	for n < len(all) && all[n].t < t {
		n++
	}
	return append(all[:0], all[n:]...)
}

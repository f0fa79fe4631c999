package signal

import (
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/world"
)

// roster follows which workers took part, and when: an instance of the pipeline is one unbroken time in which a Node was
// a Ready worker. It remembers those of the window.
type roster struct {
	spells []*spell
	latest map[string]*spell
}

// spell is one such time, in ms; end 0 = it goes on.
type spell struct {
	id, node   string
	ready      time.Time // since when the Node has said that it is Ready
	start, end int64
	seen       bool // at the update under way
}

// nodeKey tells two Nodes of one name, one after the other, apart.
func nodeKey(n *world.Node) string { return n.Object.Name + "/" + string(n.Object.UID) }

// update takes what is seen at now. It returns the spell of each worker, nil for those that are not Ready.
func (r *roster) update(now int64, workers []world.Node) []*spell {
	if r.latest == nil {
		r.latest = map[string]*spell{}
	}
	out := make([]*spell, len(workers))
	for i := range workers {
		if workers[i].Ready {
			out[i] = r.join(now, &workers[i])
			out[i].seen = true
		}
	}
	for _, s := range r.spells {
		if s.end == 0 && !s.seen {
			s.end = max(now, s.start+1)
		}
		s.seen = false
	}
	return out
}

// join returns the spell of a Ready worker, a new one if it has not been Ready without a break.
func (r *roster) join(now int64, n *world.Node) *spell {
	key := nodeKey(n)
	last := r.latest[key]
	if last != nil && last.end == 0 && last.ready.Equal(n.ReadySince) {
		return last
	}
	since := n.ReadySince
	if since.IsZero() {
		since = n.Object.CreationTimestamp.Time
	}
	s := &spell{node: key, ready: n.ReadySince, start: since.UnixMilli()}
	if last != nil {
		if last.end == 0 {
			last.end = max(min(s.start, now), last.start+1)
		}
		s.start = max(s.start, last.end)
	}
	s.id = fmt.Sprintf("%s/%d", key, s.start)
	r.spells = append(r.spells, s)
	r.latest[key] = s
	return s
}

// forget lets go of spells that ended before t.
func (r *roster) forget(t int64) {
	kept := r.spells[:0]
	for _, s := range r.spells {
		if s.end == 0 || s.end > t {
			kept = append(kept, s)
		} else if r.latest[s.node] == s {
			delete(r.latest, s.node)
		}
	}
	clear(r.spells[len(kept):])
	r.spells = kept
}

// forgetFrom has those that ended at t or later go on, until they are missed again.
func (r *roster) forgetFrom(t int64) {
	for _, s := range r.spells {
		switch {
		case s.end < t:
		case r.latest[s.node] == s:
			s.end = 0
		default:
			s.end = max(t, s.start+1)
		}
	}
}

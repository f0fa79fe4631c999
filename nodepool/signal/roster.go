package signal

import (
	"fmt"

	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/nodepool/cluster"
)

// roster follows who carries load, and when: an instance of the pipeline is one unbroken time in which a Node was there,
// from when it was Ready. One that is not Ready for a while, or that leaves, carries what it has until it is gone. The
// roster remembers those of the window.
type roster struct {
	spells []*spell
	latest map[string]*spell // by nodeKey
}

// spell is one such time, in ms; end 0 = it goes on.
type spell struct {
	id, node   string
	start, end int64
	seen       bool // at the update under way
}

// nodeKey tells two Nodes of one name, one after the other, apart.
func nodeKey(n *cluster.Node) string { return nodequery.Key(n.Object.Name, n.Object.UID) }

// update takes what is seen at now, and tells who carries load.
func (r *roster) update(now int64, workers, leaving []cluster.Node) (present []carrier) {
	if r.latest == nil {
		r.latest = map[string]*spell{}
	}
	add := func(n *cluster.Node, leaving bool) {
		load := share(n)
		if s := r.join(n, load); s != nil && !s.seen {
			s.seen = true
			present = append(present, carrier{Node: n, spell: s, load: load, works: n.Ready && !leaving})
		}
	}
	for i := range workers {
		add(&workers[i], false)
	}
	for i := range leaving {
		add(&leaving[i], true)
	}
	for _, s := range r.spells {
		if s.end == 0 && !s.seen {
			s.end = max(now, s.start+1)
		}
		s.seen = false
	}
	return present
}

// carrier is a node that carries load.
type carrier struct {
	*cluster.Node
	spell *spell
	load  loads
	works bool // it is Ready and does not leave
}

// join returns the spell of a node; nil if it has not been Ready yet.
func (r *roster) join(n *cluster.Node, load loads) *spell {
	key := nodeKey(n)
	last := r.latest[key]
	if last != nil && last.end == 0 {
		return last
	}
	since := n.ReadySince
	if !n.Ready || since.IsZero() {
		if since = n.Object.CreationTimestamp.Time; !n.Ready && load == (loads{}) {
			return nil
		}
	}
	s := &spell{node: key, start: since.UnixMilli()}
	if last != nil {
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

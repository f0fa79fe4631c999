package signal

import (
	"fmt"

	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/nodepool/cluster"
)

// nodeHistory tracks which nodes exist, and when: an instance of the pipeline is one uninterrupted period of a Node,
// from when it was Ready. A Node that is not Ready for a while, or that leaves, counts until it is gone. The history
// covers the window.
type nodeHistory struct {
	periods []*period
	latest  map[string]*period // by nodeKey
}

// period is one such period, in ms; end 0 = it has not ended.
type period struct {
	id, node   string
	start, end int64
	seen       bool // in the current update
}

// nodeKey distinguishes consecutive Nodes with the same name.
func nodeKey(n *cluster.Node) string { return nodequery.Key(n.Object.Name, n.Object.UID) }

// update records the nodes at now, and returns those that exist.
func (h *nodeHistory) update(now int64, workers, leaving []cluster.Node) (present []loadedNode) {
	if h.latest == nil {
		h.latest = map[string]*period{}
	}
	add := func(n *cluster.Node, leaving bool) {
		load := share(n)
		if s := h.periodOf(n, load); s != nil && !s.seen {
			s.seen = true
			present = append(present, loadedNode{Node: n, period: s, load: load, works: n.Ready && !leaving})
		}
	}
	for i := range workers {
		add(&workers[i], false)
	}
	for i := range leaving {
		add(&leaving[i], true)
	}
	for _, s := range h.periods {
		if s.end == 0 && !s.seen {
			s.end = max(now, s.start+1)
		}
		s.seen = false
	}
	return present
}

// loadedNode is an existing node with its load.
type loadedNode struct {
	*cluster.Node
	period *period
	load   loads
	works  bool // it is Ready and not leaving
}

// periodOf returns the current period of a node; nil if it has not been Ready yet.
func (h *nodeHistory) periodOf(n *cluster.Node, load loads) *period {
	key := nodeKey(n)
	last := h.latest[key]
	if last != nil && last.end == 0 {
		return last
	}
	since := n.ReadySince
	if !n.Ready || since.IsZero() {
		if since = n.Object.CreationTimestamp.Time; !n.Ready && load == (loads{}) {
			return nil
		}
	}
	s := &period{node: key, start: since.UnixMilli()}
	if last != nil {
		s.start = max(s.start, last.end)
	}
	s.id = fmt.Sprintf("%s/%d", key, s.start)
	h.periods = append(h.periods, s)
	h.latest[key] = s
	return s
}

// trim drops periods that ended before t.
func (h *nodeHistory) trim(t int64) {
	kept := h.periods[:0]
	for _, s := range h.periods {
		if s.end == 0 || s.end > t {
			kept = append(kept, s)
		} else if h.latest[s.node] == s {
			delete(h.latest, s.node)
		}
	}
	clear(h.periods[len(kept):])
	h.periods = kept
}

// rewind reopens periods that ended at t or later, until their nodes are missing again.
func (h *nodeHistory) rewind(t int64) {
	for _, s := range h.periods {
		switch {
		case s.end < t:
		case h.latest[s.node] == s:
			s.end = 0
		default:
			s.end = max(t, s.start+1)
		}
	}
}

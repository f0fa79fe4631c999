package podtracker

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

// startupsKept is how many start-ups of a target are kept. A startup time that moves by a tenth a measurement
// comes from any start to its end within so many, so that forgetting older ones changes nothing.
const startupsKept = 64

// Startup is the way of one pod from creation to its first readiness (whole seconds both, as pods record them).
type Startup struct {
	Created, Ready time.Time
}

// IsZero returns whether there was no start-up to measure.
func (s Startup) IsZero() bool { return s == Startup{} }

// startups holds the newest start-ups of a target in order of readiness, so that the estimate does not depend on the order in
// which pods were listed.
type startups struct {
	sorted []podStartup

	estimate pipeline.StartupTime // by method, of initial and sorted, unless stale
	method   pipeline.Method
	initial  time.Duration
	stale    bool
}

type podStartup struct {
	Startup
	uid types.UID
}

func (a podStartup) compare(b podStartup) int {
	return cmp.Or(a.Ready.Compare(b.Ready), a.Created.Compare(b.Created), cmp.Compare(a.uid, b.uid))
}

func (s *startups) add(uid types.UID, x Startup) {
	if x.IsZero() {
		return
	}
	p := podStartup{Startup: x, uid: uid}
	at, known := slices.BinarySearchFunc(s.sorted, p, podStartup.compare)
	if known || (at == 0 && len(s.sorted) == startupsKept) {
		return
	}
	s.sorted = slices.Insert(s.sorted, at, p)
	if extra := len(s.sorted) - startupsKept; extra > 0 {
		s.sorted = slices.Delete(s.sorted, 0, extra)
	}
	s.stale = true
}

// drop removes the start-up of a deleted pod: a replica that starts now could not know it either.
func (s *startups) drop(uid types.UID) {
	before := len(s.sorted)
	s.sorted = slices.DeleteFunc(s.sorted, func(x podStartup) bool { return x.uid == uid })
	s.stale = s.stale || len(s.sorted) < before
}

func (s *startups) list() []Startup {
	out := make([]Startup, len(s.sorted))
	for i, x := range s.sorted {
		out[i] = x.Startup
	}
	return out
}

// startupTime estimates T_I from initial and the start-ups kept.
func (s *startups) startupTime(m pipeline.Method, initial time.Duration) time.Duration {
	if s.stale || s.method != m || s.initial != initial {
		estimate := pipeline.NewStartupTime(m, initial)
		for _, x := range s.sorted {
			estimate.Observe(x.Created.UnixMilli(), x.Ready.UnixMilli())
		}
		s.estimate, s.method, s.initial, s.stale = *estimate, m, initial, false
	}
	return s.estimate.Value()
}

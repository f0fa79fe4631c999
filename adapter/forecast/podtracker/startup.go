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

// Startup is the way of one pod from creation to its first readiness (whole seconds, as pods record them).
type Startup struct {
	Created   time.Time
	Scheduled time.Time // when it had a node, if it waited for one; else zero
	Ready     time.Time
}

// begin is when the start-up began, if the wait for a node is not part of it.
func (s Startup) begin() time.Time {
	if s.Scheduled.IsZero() {
		return s.Created
	}
	return s.Scheduled
}

// IsZero returns whether there was no start-up to measure.
func (s Startup) IsZero() bool { return s == Startup{} }

// startups holds the newest start-ups of a target in order of readiness, so that the estimate does
// not depend on the order in which pods were listed.
type startups struct {
	sorted []podStartup

	estimate pipeline.StartupTime // by of, from initial and sorted, unless stale
	of       estimated
	stale    bool
}

// estimated holds the inputs of an estimate other than the start-ups.
type estimated struct {
	method  pipeline.Method
	initial time.Duration
	onNode  bool // without the wait for a node
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

// startupTime estimates T_I from an initial value and the start-ups kept.
func (s *startups) startupTime(of estimated) time.Duration {
	if s.stale || s.of != of {
		estimate := pipeline.NewStartupTime(of.method, of.initial)
		for _, x := range s.sorted {
			begin := x.Created
			if of.onNode {
				begin = x.begin()
			}
			estimate.Observe(begin.UnixMilli(), x.Ready.UnixMilli())
		}
		s.estimate, s.of, s.stale = *estimate, of, false
	}
	return s.estimate.Value()
}

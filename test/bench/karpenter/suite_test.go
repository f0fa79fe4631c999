//go:build long

package karpenter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The scenarios of Karpenter's own performance suite on kwok: many pods at once, most of them gone
// again, and pods that no two nodes may have unevenly. Each is one step of a Deployment.
var suiteSteps = []struct {
	name   string
	pods   []int // of the Deployment: at first, and then
	nodes  int   // that are enough for the last number
	spread bool
}{
	{name: "scale-out", pods: []int{0, 1000}, nodes: 250},
	{name: "consolidation", pods: []int{1000, 300}, nodes: 75},
	{name: "host-name-spread", pods: []int{0, 60}, nodes: 60, spread: true},
}

// BenchmarkSuite plays each step to Karpenter and then to a WorkerPool, in real time, by their
// defaults: how long it takes until all pods have a node and no more than a tenth of the nodes is
// superfluous, and at what cost.
func BenchmarkSuite(b *testing.B) {
	r := newRivals(b, false)
	for _, step := range suiteSteps {
		for _, c := range contenders {
			l := load{name: step.name, pods: func(time.Duration) int { return step.pods[0] }, most: 300,
				spread: step.spread}
			s := r.newSide(l, c)
			r.steps(s, step.pods[0], step.pods[0]/4, 10*time.Minute)
			u := r.watchUsage(r.processes[s.process])
			began, idle := time.Now(), r.idleCores()
			require.NoError(b, s.scale(step.pods[1]))
			took := r.steps(s, step.pods[1], step.nodes, 20*time.Minute)
			u.stop()
			f := s.ledger.figures(began, time.Now())
			idle = (r.idleCores() - idle) / time.Since(began).Seconds()
			b.Run(step.name+"/"+c.name, func(b *testing.B) {
				report(b, f, u, idle)
				b.ReportMetric(took.Seconds(), "seconds")
				b.ReportMetric(float64(s.ledger.instancesNow()), "nodes-left")
			})
			s.leave()
		}
	}
}

// steps waits until all pods have a node, and the nodes are at most a tenth and one more than are
// enough. It returns how long that took, or the limit.
func (r *rivals) steps(s *side, pods, nodes int, limit time.Duration) time.Duration {
	r.Helper()
	began := time.Now()
	for time.Since(began) < limit {
		r.wait(500 * time.Millisecond)
		if s.ledger.boundNow() == pods && s.ledger.pendingNow() == 0 && s.ledger.instancesNow() <= nodes+nodes/10+1 {
			return time.Since(began)
		}
	}
	r.Logf("%s: %d of %d pods have a node, of %d nodes, after %s", s.name, s.ledger.boundNow(), pods,
		s.ledger.instancesNow(), limit)
	return limit
}

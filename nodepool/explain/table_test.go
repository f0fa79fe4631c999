package explain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

func spanOf(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// busy returns a pool with every kind of event.
func busy() Explanation {
	last := ago(time.Minute)
	return Explanation{
		At: now, Name: "workers", Generation: 3, Created: ago(26 * time.Hour),
		Spec: v1alpha1.WorkerPoolSpec{
			Min: 2, Max: 10, MaxBatchUp: new(int32(0)), DryRun: true,
			Signals:  []v1alpha1.PoolSignal{{Name: "cpu", Threshold: resource.MustParse("700m")}},
			Market:   v1alpha1.MarketPolicy{SpotRatio: quantity("700m"), OnDemandBase: 1},
			Cooldown: v1alpha1.PoolCooldown{Up: spanOf(5 * time.Minute), Down: spanOf(90 * time.Second)},
			Idle:     v1alpha1.IdlePolicy{For: spanOf(10 * time.Minute)},
			Provider: v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{Zones: []string{"a", "b"}}},
		},
		Status: v1alpha1.WorkerPoolStatus{
			ObservedGeneration: 3,
			Rollout:            &v1alpha1.PoolRollout{Outdated: 1, Unknown: 2, Message: "its launch template is old"},
			Workers:            new(int32(5)), ReadyWorkers: new(int32(4)), Desired: new(int32(7)),
			StartupTime: spanOf(35 * time.Second),
			Conditions: []metav1.Condition{
				{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "Working", Message: "all is well"},
			},
			Terminating:       []string{"node-9", "node-8"},
			RemovalCandidates: []string{"node-3", "node-4"},
			Action: &v1alpha1.PoolAction{
				ID: "up-1", Kind: "ScaleUp", Started: ago(40 * time.Second), Progress: "1 Ready",
			},
			Signals: []v1alpha1.PoolSignalStatus{
				{
					Name: "cpu", Current: quantity("650m"), Predicted: quantity("910m"), Horizon: spanOf(42 * time.Second),
					Recommended: new(int32(7)),
				},
				{Name: "queue", Error: "no series"},
			},
			Decisions: []v1alpha1.PoolDecision{
				{Time: ago(40 * time.Second), Step: "ScaleUp", Reason: "LoadPredicted", Message: "cpu will be 0.91",
					Workers: 5, Desired: 7, Recommendations: []v1alpha1.PoolRecommendation{
						{
							Signal: "cpu", Workers: new(int32(7)), Reason: "0.91 in 42s",
						}, {Signal: "queue", Reason: "no series"}, {Signal: "minimum", Workers: new(int32(2))},
					}},
				{
					Time: ago(10 * time.Minute), Last: &last, Count: 37, Step: "Hold", Reason: "NothingToDo",
					Message: "nothing to do", Workers: 5, Desired: 5,
				},
			},
		},
		Journal: &state.Record{
			Owner: "host_1",
			Action: &state.Action{ID: "up-1", Kind: state.ActionUp, Message: "cpu will be 0.91", Slots: []state.Slot{
				{
					Number: 1, Placement: fleet.Placement{Zone: "a", InstanceType: "t3", Market: fleet.Spot},
					State: state.SlotFailed, Error: "no capacity",
				},
				{
					Number: 2, Placement: fleet.Placement{Zone: "b", InstanceType: "t3", Market: fleet.Spot},
					State: state.SlotLaunched, InstanceID: "i-2",
				},
			}},
			Interruptions: []state.Removal{
				{InstanceID: "i-9", Node: "node-9", State: state.RemovalDraining, Deadline: now.Add(95 * time.Second)},
			},
			Repairs: []state.Removal{
				{
					InstanceID: "i-6", Node: "node-6", State: state.RemovalDraining, Error: "2 pods are left",
				}, {InstanceID: "i-5", State: state.RemovalPlanned},
			},
			PendingTerminations: []state.PendingTermination{
				{InstanceID: "i-8", Reason: "JoinFailed", Due: now.Add(15 * time.Minute)},
			},
			Cooling: []fleet.Cooling{
				{Zone: "a", InstanceType: "t3", Market: fleet.Spot, Until: now.Add(3 * time.Minute), Reason: "no capacity"},
				{Zone: "c", Market: fleet.Spot, Until: now.Add(-time.Second), Reason: "long ago"},
			},
			Attempts: []state.Attempt{
				{
					Pod: "shop/web-1", Failed: 2, Until: now.Add(20 * time.Minute),
				}, {Pod: "shop/web-2", Failed: 1, Until: now.Add(-time.Second)},
			},
			DrainBackoff: map[string]time.Time{"i-3": now.Add(time.Hour), "i-4": now.Add(-time.Hour)},
		},
		Nodes: []Node{{Name: "node-1", Ready: true}, {Name: "node-2", Blocked: "pod shop/bare has no controller"}},
	}
}

const busyTable = `WorkerPool workers, 26h old, generation 3
  provider  simulated, in zones a, b
  workers   from 2 to 10, at a time any number more
  market    1 On-Demand, of the others 70% Spot
  cooldown  up 5m, down 1m30s; idle for 10m
  dry run   decisions are not carried out

Now
  workers             5 that count, 4 of them Ready, 7 desired
  pending pods        unknown
  a launch takes      35s
  outdated            1, and unknown of 2: its launch template is old
  terminating         node-9, node-8: outside of actions: reclaimed, repaired, or never joined
  removal candidates  node-3, node-4: next if the load stays as low; the scheduler extender prefers other nodes
  Healthy             True, Working: all is well
  leader              host_1

Signals
  NAME   NOW   PREDICTED  IN   THRESHOLD  RECOMMENDS
  cpu    0.65  0.91       42s  0.70       7
  queue  no series

Open: ScaleUp up-1, started 40s ago
  reason  cpu will be 0.91
  node 1  Failed    a, t3, Spot       no capacity
  node 2  Launched  b, t3, Spot  i-2

What holds decisions back, or happens outside of the action
  node-9      is reclaimed by the cloud in 1m35s: Draining
  node-6      is drained and terminated, as it has been unhealthy for long: Draining, 2 pods are left
  i-5         is drained and terminated, as it has been unhealthy for long: Planned
  i-8         is terminated in 15m: JoinFailed
  a/t3/Spot   is not launched for another 3m: no capacity
  shop/web-1  gets no new node for another 20m, nor do pods like it: launched nodes took none (2 times in a row)
  i-3         is not drained for another 1h: its last drain failed
  node-2      is not removed: pod shop/bare has no controller

Decisions, the newest first
  2026-03-01 11:59:20                            ScaleUp LoadPredicted  5 → 7  cpu will be 0.91
                                                                               cpu 7, queue unknown, minimum 2
  2026-03-01 11:50:00 (37 times until 11:59:00)  Hold NothingToDo       5 → 5  nothing to do

Recommendations of the newest decision: cpu 7, queue unknown, minimum 2
  cpu      7        0.91 in 42s
  queue    unknown  no series
  minimum  2
`

// trimmed removes white space at the ends of lines.
func trimmed(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.TrimRight(line, " \n"))
	}
	return strings.Join(out, "\n")
}

func tableOf(t *testing.T, e Explanation) string {
	var b strings.Builder
	require.NoError(t, Table(&b, e))
	return trimmed(b.String())
}

func TestTable(t *testing.T) {
	assert.Equal(t, trimmed(busyTable), tableOf(t, busy()))
}

// The status of an older generation does not apply to the newest spec.
func TestTableOfARollout(t *testing.T) {
	e := busy()
	e.Status.Rollout = &v1alpha1.PoolRollout{}
	assert.Contains(t, tableOf(t, e), "  outdated            0\n")
	e.Generation++
	assert.Contains(t, tableOf(t, e), "  outdated            unknown\n")
	e.Generation, e.Status.Rollout = 3, nil
	assert.Contains(t, tableOf(t, e), "  outdated            unknown\n")
}

func TestTableOfAnUnknownPool(t *testing.T) {
	text := tableOf(
		t,
		Explanation{
			At: now, Name: "new", Created: ago(time.Second), NodesError: "forbidden", JournalError: "of a newer Foresail",
		},
	)
	for _, want := range []string{
		"no status yet: is foresail run --enable nodepool running?",
		"unknown that count, unknown of them Ready, unknown desired",
		"No action is open.", "No decision yet.", "it is unknown what blocks their removal: forbidden",
		"cannot be read: of a newer Foresail",
	} {
		assert.Contains(t, text, want)
	}
	assert.Contains(t, tableOf(t, Explanation{At: now, JournalAt: "table t of DynamoDB"}), "in table t of DynamoDB")
}

// TestTableNamesTheNodesOfARemoval has the journal elsewhere: only the status names the nodes.
func TestTableNamesTheNodesOfARemoval(t *testing.T) {
	var nodes []string
	for i := range 12 {
		nodes = append(nodes, fmt.Sprintf("node-%d", i))
	}
	text := tableOf(t, Explanation{At: now, JournalAt: "table t of DynamoDB", Status: v1alpha1.WorkerPoolStatus{
		Action: &v1alpha1.PoolAction{
			ID: "down-1", Kind: "ScaleDown", Started: ago(time.Minute), Progress: "draining node-1",
			Nodes: []string{"node-1", "node-2"},
		},
		RemovalCandidates: nodes,
	}})
	assert.Contains(t, text, "Open: ScaleDown down-1, started 1m ago\n"+
		"  removes  node-1, node-2: in this order; the scheduler extender filters them\n  draining node-1\n")
	assert.Contains(t, text, "node-8, node-9 and 2 more: next if the load stays as low")
	assert.NotContains(t, text, "node-10")
	assert.NotContains(t, text, "terminating", "an absent list is unknown, not empty")
}

func TestDecisionWithoutObservationHasNoNumbers(t *testing.T) {
	unknown := Explanation{At: now, Status: v1alpha1.WorkerPoolStatus{Decisions: []v1alpha1.PoolDecision{
		{Time: ago(time.Minute), Step: "Hold", Reason: string(plan.WorkersUnknown), Message: "EC2 does not answer"},
	}}}
	text := tableOf(t, unknown)
	assert.NotContains(t, text, "0 → 0")
	assert.Contains(t, text, "Hold WorkersUnknown  -  EC2 does not answer")
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 400 * time.Millisecond: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m30s",
		10 * time.Minute: "10m", time.Hour: "1h",
		100*time.Minute + 20*time.Second: "1h40m", 20 * time.Hour: "20h", 72 * time.Hour: "3d",
	} {
		assert.Equal(t, want, age(d), d.String())
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken pipe")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestTableReturnsWriteErrors(t *testing.T) {
	assert.ErrorIs(t, Table(brokenWriter{}, busy()), errBroken)
}

package plan_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// steady is a pool of four workers in two zones that is neither busy nor idle, with common parameters.
func steady() plan.Snapshot {
	return plan.Snapshot{
		Now: noon,
		Pool: plan.Pool{
			Name: "workers", Min: 2, Max: 10, MaxBatchUp: 2, MaxBatchDown: 1, PendingFor: 30 * time.Second, PodsPerNode: 10,
			Idle:       plan.Idle{For: 10 * time.Minute, CPU: 0.3, Memory: 0.5},
			CooldownUp: 5 * time.Minute, CooldownDown: 10 * time.Minute, SpotRatio: 0.7,
		},
		Instances: workersIn("a", "b", "a", "b"),
		Pending:   plan.Pending{Known: true}, Disruption: plan.Disruption{Nodes: 500, Why: "the budget allows 500"},
		Signals: []plan.Signal{
			{Name: "cpu", Known: true, Now: 0.5, Predicted: 0.5, Threshold: 0.7, Margin: 0.3, Desired: 4, Fits: 4,
				For: 3 * time.Minute, CPU: true},
			{Name: "memory", Known: true, Now: 0.6, Predicted: 0.6, Threshold: 0.75, Margin: 0.3, Desired: 4, Fits: 4,
				For: 3 * time.Minute, Memory: true},
		},
		Offers: offers("a", "b"),
	}
}

// idle is a pool that has been idle for long enough, of which half would be enough.
func idle() plan.Snapshot {
	s := steady()
	for i := range s.Signals {
		s.Signals[i].Now, s.Signals[i].Predicted, s.Signals[i].Desired, s.Signals[i].Fits = 0.2, 0.2, 2, 2
	}
	s.Record.IdleSince = ago(10 * time.Minute)
	return s
}

// opened returns an open action that takes no further nodes, with slots that are still to be launched.
func opened(kind state.ActionKind, planned ...state.Slot) *state.Action {
	for i := range planned {
		planned[i].State = cmp.Or(planned[i].State, state.SlotPlanned)
	}
	return &state.Action{ID: "open-1", Kind: kind, Started: ago(time.Hour), Slots: planned}
}

// lost returns a slot whose launch has failed permanently, as refused says or for another reason.
func lost(s state.Slot, refused bool) state.Slot {
	s.State, s.Lost, s.Refused = state.SlotFailed, true, refused
	return s
}

// interruptions returns instances that the cloud reclaims, and for which no replacement has been decided.
func interruptions(ids ...string) []state.Removal {
	var out []state.Removal
	for _, id := range ids {
		out = append(out, state.Removal{InstanceID: id, Deadline: noon.Add(2 * time.Minute)})
	}
	return out
}

// launched returns a worker without a Node.
func launched(id string, at fleet.Placement, when time.Time) plan.Instance {
	return plan.Instance{Instance: fleet.Instance{ID: id, Placement: at, Launched: when, State: fleet.Pending},
		Worker: true, Listed: true}
}

// workersIn returns a worker for each of the zones, the first the oldest and each as busy as the others.
func workersIn(zones ...string) []plan.Instance {
	out := make([]plan.Instance, len(zones))
	for i, zone := range zones {
		id := fmt.Sprintf("i-%03d", i)
		out[i] = plan.Instance{
			Instance: fleet.Instance{
				ID: id, ProviderID: "aws:///" + id, State: fleet.Running,
				Launched:  noon.Add(-24*time.Hour + time.Duration(i)*time.Minute),
				Placement: fleet.Placement{Zone: zone, Market: fleet.Spot, InstanceType: "t3.medium"},
			},
			Worker: true, Listed: true, Node: plan.Node{Name: fmt.Sprintf("node-%03d", i), Ready: true, Labelled: true},
			Known: true, Pods: 5, Utilisation: 0.5,
		}
	}
	return out
}

func offers(zones ...string) []fleet.Offer {
	var out []fleet.Offer
	for _, kind := range []string{"t3.medium", "t3.large"} {
		for _, zone := range zones {
			out = append(out, fleet.Offer{Zone: zone, Subnet: "subnet-" + zone, InstanceType: kind})
		}
	}
	return out
}

// wants makes a signal recommend n workers since some time ago.
func wants(s *plan.Snapshot, name string, now float64, n int, since time.Duration) {
	for i := range s.Signals {
		if s.Signals[i].Name == name {
			s.Signals[i].Now, s.Signals[i].Predicted, s.Signals[i].Desired, s.Signals[i].Since = now, now, n, ago(since)
			return
		}
	}
	panic("no signal " + name)
}

// pends adds pending pods, sized as ceil(pods / podsPerNode).
func pends(s *plan.Snapshot, pods int) {
	perNode := s.Pool.PodsPerNode
	s.Pending = plan.Pending{Known: true, Pods: pods, Due: pods, Nodes: (pods + perNode - 1) / perNode,
		OldestFor: s.Pool.PendingFor}
}

// loses makes a signal unknown.
func loses(s *plan.Snapshot, name string) {
	for i := range s.Signals {
		if s.Signals[i].Name == name {
			s.Signals[i] = plan.Signal{Name: name, Err: "the server does not answer", CPU: s.Signals[i].CPU,
				Memory: s.Signals[i].Memory, InformsOnly: s.Signals[i].InformsOnly}
			return
		}
	}
	panic("no signal " + name)
}

// row is one case of a rule: the decision after a change to a pool.
type row struct {
	name   string
	from   func() plan.Snapshot // steady if nil
	change func(*plan.Snapshot)
	step   plan.Step
	reason plan.Reason
	nodes  int // launched or removed
	urgent bool
}

func run(t *testing.T, rows []row) {
	t.Helper()
	names := map[string]bool{}
	for _, r := range rows {
		require.False(t, names[r.name], "two rows are named %q", r.name)
		names[r.name] = true
		t.Run(r.name, func(t *testing.T) {
			if r.from == nil {
				r.from = steady
			}
			s := r.from()
			r.change(&s)
			d := plan.Decide(s)
			assert.Equal(t, r.step, d.Step, d.Message)
			assert.Equal(t, r.reason, d.Reason, d.Message)
			assert.Equal(t, r.urgent, d.Urgent, d.Message)
			up, down := 0, 0
			switch r.step {
			case plan.ScaleUp:
				up = r.nodes
			case plan.ScaleDown:
				down = r.nodes
			}
			assert.Len(t, d.Placements, up, d.Message)
			assert.Len(t, d.Targets, down, d.Message)
			check(t, s, d)
		})
	}
}

func ids(list []plan.Target) []string {
	var out []string
	for _, t := range list {
		out = append(out, t.InstanceID)
	}
	return out
}

func places(list []fleet.Placement) []string {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%s %s %s", p.Zone, p.InstanceType, p.Market))
	}
	return out
}

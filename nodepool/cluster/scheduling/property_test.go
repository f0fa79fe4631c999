package scheduling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// randomInput is a random world: a full node in each of three zones, some nodes with room, two
// types, pods with rules of all sorts.
func randomInput(r *rand.Rand, rules bool) Input {
	in := Input{Offers: []provider.Offer{offer("a", "m"), offer("b", "m"), offer("c", "m"), offer("a", "g", "gpu", "2"),
		offer("c", "g", "gpu", "2")}}
	for i, z := range []string{"a", "b", "c"} {
		full := bound("full", "4")
		in.Nodes = append(in.Nodes, node("full-"+strconv.Itoa(i), z, full))
		for j := range r.IntN(3) {
			in.Nodes = append(in.Nodes,
				node(fmt.Sprintf("n-%d-%d", i, j), z, bound("app-"+strconv.Itoa(r.IntN(4)), strconv.Itoa(1+r.IntN(3)))))
		}
	}
	for range r.IntN(3) {
		in.OnTheWay = append(in.OnTheWay, fleet.Placement{Zone: string(rune('a' + r.IntN(3))), InstanceType: "m"})
	}
	for i := range 1 + r.IntN(6) {
		app := "app-" + strconv.Itoa(i)
		changes := []change{requests("cpu", fmt.Sprintf("%dm", 100+r.IntN(3900)))}
		if rules {
			for _, c := range []change{
				requests("cpu", "500m", "gpu", "1"), inZone(string(rune('a' + r.IntN(4)))), hostPort(80),
				awayFrom("app-"+strconv.Itoa(r.IntN(4)), host), awayFrom("app-"+strconv.Itoa(r.IntN(4)), zone),
				spreadOver(zone, 1+int32(r.IntN(2))),
			} {
				if r.IntN(4) == 0 {
					changes = append(changes, c)
				}
			}
		}
		in.Pods = append(in.Pods, pods(app, 1+r.IntN(8), changes...)...)
	}
	for i := range in.Pods {
		switch pod := in.Pods[i : i+1]; {
		case !rules || r.IntN(3) > 0:
		case r.IntN(8) == 0:
			stuck(pod)
		case r.IntN(2) == 0:
			located(pod, zone, "a", string(rune('b'+r.IntN(2))))
		default:
			located(pod, zone, string(rune('a'+r.IntN(4))))
		}
	}
	if r.IntN(2) == 0 {
		in.Costs = map[fleet.Offer]float64{}
		for _, o := range in.Offers {
			if r.IntN(4) > 0 { // the others are not known
				in.Costs[o.Offer] = float64(1+r.IntN(20)) / 100
			}
		}
	}
	return in
}

// joining makes some of the nodes join, of a type that promises more, one that does not, or one that
// is not offered any more.
func joining(r *rand.Rand, in Input) Input {
	in.Template.StartupTaints = []corev1.Taint{{Key: "agent", Effect: corev1.TaintEffectNoSchedule}}
	in.NewlyReady = map[string]fleet.Placement{}
	for i, n := range in.Nodes {
		if r.IntN(4) == 0 {
			in.Nodes[i] = tainted(n, "agent")
			in.NewlyReady[n.Object.Name] = fleet.Placement{Zone: n.Object.Labels[zone],
				InstanceType: []string{"m", "g", "old"}[r.IntN(3)]}
		}
	}
	return in
}

// checkVolumes asserts that every placed pod is where its volumes are.
func checkVolumes(t *testing.T, in Input, p *packer) {
	t.Helper()
	placed := map[*corev1.Pod]bool{}
	for _, at := range p.nodes.open {
		for _, taken := range at.takes {
			placed[taken.group.pod] = true
		}
	}
	volumes := map[string][]*corev1.NodeSelector{}
	for _, pending := range in.Pods {
		volumes[pending.Pod.Namespace+"/"+pending.Pod.Name] = pending.Volumes
		assert.False(t, pending.Stuck != "" && placed[pending.Pod], "%s is stuck", pending.Pod.Name)
	}
	for _, at := range p.nodes.open {
		for _, taken := range at.takes {
			for _, m := range taken.group.members {
				for _, v := range volumes[m.name] {
					assert.Contains(t, v.NodeSelectorTerms[0].MatchExpressions[0].Values, at.node.Labels[zone], m.name)
				}
			}
		}
	}
	for _, at := range p.nodes.open {
		for i, allowed := range at.allowed {
			for _, taken := range at.takes {
				for _, v := range volumes[taken.group.members[0].name] {
					if allowed && at.kind == added {
						assert.Contains(t, v.NodeSelectorTerms[0].MatchExpressions[0].Values, p.nodes.catalog.shapes[i].offer.Zone,
							"a node may be where volumes are not")
					}
				}
			}
		}
	}
}

// resident is a pod in a place, as a naive check sees it.
type resident struct {
	app    string
	anti   []corev1.PodAffinityTerm
	host   int
	zone   string
	nodeOf *place
}

func residents(in Input, p *packer) []resident {
	var out []resident
	for i, at := range append(slices.Clone(p.nodes.existing), p.nodes.open...) {
		if i < len(p.nodes.existing) {
			for _, pod := range in.Nodes[i].Pods {
				out = append(out, resident{pod.Labels["app"], pod.AntiAffinity,
					slices.Index(p.nodes.open, at), at.node.Labels[zone], at})
			}
		}
		for _, taken := range at.takes {
			if i >= len(p.nodes.existing) {
				for range taken.n {
					pod := taken.group.pod
					out = append(out, resident{pod.Labels["app"], antiAffinityTerms(&pod.Spec),
						i - len(p.nodes.existing), at.node.Labels[zone], at})
				}
			}
		}
	}
	return out
}

func checkPlaces(t *testing.T, in Input, p *packer) {
	t.Helper()
	for _, at := range p.nodes.open {
		for i, free := range at.free {
			assert.GreaterOrEqual(t, free, int64(0), "dimension %d of %s", i, at.node.Name)
		}
		ports := 0
		for _, taken := range at.takes {
			ports += taken.n * len(taken.group.ports)
			if want := taken.group.pod.Spec.NodeSelector[zone]; want != "" {
				assert.Equal(t, want, at.node.Labels[zone])
			}
		}
		assert.LessOrEqual(t, ports, 1, "pods with the same host port")
		if at.kind == added {
			assert.NotEmpty(t, at.takes, "a node without pods")
			assert.True(t, at.allowed[at.shape], "a node that is not what it must be")
		}
	}
	all := residents(in, p)
	for i, x := range all {
		for _, term := range x.anti {
			for j, y := range all {
				if i == j || y.app != term.LabelSelector.MatchLabels["app"] {
					continue
				}
				assert.False(t, term.TopologyKey == host && x.nodeOf == y.nodeOf, "%s and %s are on one host", x.app, y.app)
				assert.False(t, term.TopologyKey == zone && x.zone == y.zone, "%s and %s are in one zone", x.app, y.app)
			}
		}
	}
	checkSpread(t, p, all)
}

// checkSpread requires that every zone has a node from the start.
func checkSpread(t *testing.T, p *packer, all []resident) {
	t.Helper()
	for _, g := range p.batches {
		if len(g.pod.Spec.TopologySpreadConstraints) == 0 || g.left == len(g.members) || g.pod.Spec.NodeSelector != nil {
			continue
		}
		in := map[string]int{"a": 0, "b": 0, "c": 0}
		before := map[string]int{"a": 0, "b": 0, "c": 0}
		for _, r := range all {
			if r.app == g.pod.Labels["app"] {
				in[r.zone]++
			}
		}
		for _, at := range p.nodes.open {
			for _, taken := range at.takes {
				if taken.group == g.group {
					before[at.node.Labels[zone]] += taken.n
				}
			}
		}
		least := min(in["a"], in["b"], in["c"])
		for z, n := range in {
			if before[z] > 0 { // the pods that were there before need not be even
				assert.LessOrEqual(t, n-least, int(g.pod.Spec.TopologySpreadConstraints[0].MaxSkew),
					"%s in %s of %v", g.pod.Labels["app"], z, in)
			}
		}
	}
}

// need is the CPU that pods request which need new nodes.
func need(p *packer) (cpus int64, largest int64) {
	for _, at := range p.nodes.open {
		if at.kind != added {
			continue
		}
		for _, taken := range at.takes {
			cpus += int64(taken.n) * taken.group.request[cpu]
		}
	}
	return cpus, p.nodes.catalog.shapes[0].free[cpu]
}

// waiting counts the pods that a node on its way will run, and no new one could.
func waiting(p *packer) (n int) {
	for _, at := range p.nodes.open {
		for _, taken := range at.takes {
			if at.kind == onTheWay && !p.ofGroup[taken.group.index].hasShape() {
				n += taken.n
			}
		}
	}
	return n
}

func TestPackingHolds(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := joining(r, randomInput(r, true))
		p := packed(in)
		result := Pack(in)
		checkPlaces(t, in, p)
		checkVolumes(t, in, p)
		cpus, size := need(p)
		assert.GreaterOrEqual(t, int64(result.Nodes)*size, cpus, "fewer nodes than there are requests")
		pinned := 0
		for _, s := range result.Shapes {
			pinned += s.Nodes
		}
		assert.LessOrEqual(t, pinned, result.Nodes)
		assert.LessOrEqual(t, result.Helped+len(result.Unhelped), len(in.Pods))
		assert.GreaterOrEqual(t, result.Helped+len(result.Unhelped)+result.Room+waiting(p), len(in.Pods))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestPackingIsTight(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		in := joining(r, randomInput(r, false))
		p := packed(in)
		result := Pack(in)
		checkPlaces(t, in, p)
		cpus, size := need(p)
		require.LessOrEqual(t, int64(result.Nodes), 2*cpus/size+1, "seed %d: two nodes are less than half full", seed)
		require.Empty(t, result.Unhelped)
		require.Empty(t, result.Shapes)
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		in := joining(r, randomInput(r, true))
		want := Pack(in)
		in.Pods = slices.Clone(in.Pods)
		r.Shuffle(len(in.Pods), func(i, j int) { in.Pods[i], in.Pods[j] = in.Pods[j], in.Pods[i] })
		require.Equal(t, want, Pack(in), "seed %d", seed)
	}
}

func TestUnknownIsNotZero(t *testing.T) {
	for name, offers := range map[string][]provider.Offer{
		"no offers":        nil,
		"of unknown sizes": {{Offer: fleet.Offer{Zone: "a", InstanceType: "m"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Pack(Input{Pods: pods("web", 3), Offers: offers, Nodes: []cluster.Node{node("n1", "a")}})
			assert.Equal(t, Result{}, r)
		})
	}
}

func TestEquivalents(t *testing.T) {
	in := Input{Pods: all(pods("web", 3), pods("far", 5, inZone("z"))), Offers: []provider.Offer{offer("a", "m")}}
	in.DaemonSets = append(in.DaemonSets, daemonSet(requests("cpu", "1", "memory", "2Gi")))
	in.Nodes = []cluster.Node{node("n1", "a", bound("db", "2"))} // demand stays what it is wherever there is room
	r := Pack(in)
	assert.Equal(t, 3, r.Helped)
	assert.Equal(t, 2, r.Room)
	assert.Equal(t, 1, r.Nodes)
	assert.InDelta(t, 3.0/3, r.CPU, 1e-9)
	assert.InDelta(t, 3.0/6, r.Memory, 1e-9)
	assert.InDelta(t, 3.0/9, r.Slots, 1e-9)
}

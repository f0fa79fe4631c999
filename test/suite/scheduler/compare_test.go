package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/cluster"
	"github.com/foresail/foresail/nodepool/provider"
)

// disagreement is an answer of the model that is not the scheduler's.
type disagreement struct {
	question  question
	about     string // a pod or a node
	model     string
	scheduler string
}

func (d disagreement) String() string {
	return fmt.Sprintf("%s %s: the model says %q, the scheduler %q", d.question, d.about, d.model, d.scheduler)
}

// alike reports whether another disagreement is of the same question about the same pod or node, or
// about some pods together.
func (d disagreement) alike(o disagreement) bool {
	return o.question == d.question && (o.about == d.about || o.question == allHelped || o.question == howManyFit)
}

// question is what model and scheduler are both asked.
type question string

// The questions.
const (
	whichNode   question = "which node takes the pod"         // one that exists, one on its way, a new one, none
	whichOffer  question = "which new nodes take the pod"     // each offer that the model allows must
	allHelped   question = "do the new nodes take all pods"   // that the model promises to help, one after the other
	howManyFit  question = "how many pods do the nodes take"  // that exist, one after the other
	hasHomes    question = "do the pods have other nodes"     // those of a node that is removed
	mayWait     question = "do they once the Node is deleted" // the same
	hasNewHomes question = "do they with one new node"        // the same
)

// The answers to whichNode.
const (
	exists   = "a node that exists"
	onItsWay = "a node on its way"
	isNew    = "a new node"
	none     = "none"
)

// variation is what the scheduler is taken to do otherwise, to find out whether that explains a disagreement.
type variation struct {
	open   bool // it binds no pods to nodes that are cordoned or not Ready, even if the pods tolerate that
	coming bool // nodes on their way have come
	worst  bool // pods come in the worst of the orders that are tried
	slow   bool // new nodes come one after the other, and pods are placed in between
	world  func(*world)
	only   *disagreement // the question that is asked, nil: all
}

// asks reports whether one of some questions is asked about something.
func (v variation) asks(about string, of ...question) bool {
	return v.only == nil || slices.Contains(of, v.only.question) && (about == "" || about == v.only.about)
}

// comparison asks both about one world.
type comparison struct {
	variation
	world     *world
	model     *model
	scheduler *scheduler
	random    *rand.Rand
	out       []disagreement
	asked     int
}

// compare returns where model and scheduler disagree about a world, and how many answers it has compared.
func compare(ctx context.Context, w *world, v variation) ([]disagreement, int, error) {
	if v.world != nil {
		w = w.copy()
		v.world(w)
	}
	s, err := newScheduler(ctx, w)
	if err != nil {
		return nil, 0, err
	}
	m, err := newModel(ctx, w)
	if err != nil {
		return nil, 0, err
	}
	c := &comparison{variation: v, world: w, model: m, scheduler: s}
	for i := range m.cluster.Pending {
		c.begin(uint64(i))
		if p := &m.cluster.Pending[i]; c.asks(nameOf(p.Pod), whichNode, whichOffer) {
			c.one(*p)
		}
	}
	c.begin(1000)
	if len(m.cluster.Pending) > 1 && c.asks("", allHelped, howManyFit) {
		c.together()
	}
	for i := range m.cluster.Nodes {
		c.begin(2000 + uint64(i))
		if n := &m.cluster.Nodes[i]; c.asks(n.Object.Name, hasHomes, mayWait, hasNewHomes) {
			c.homes(n)
		}
	}
	return c.out, c.asked, nil
}

// begin begins a question: its chances are the same whatever was asked before.
func (c *comparison) begin(question uint64) { c.random = rand.New(rand.NewPCG(c.world.Seed, question)) }

func (c *comparison) disagree(q question, about, model, scheduler string) {
	c.agree(model == scheduler, q, about, model, scheduler)
}

func (c *comparison) agree(ok bool, q question, about, model, scheduler string) {
	c.asked++
	if !ok {
		c.out = append(c.out, disagreement{q, about, model, scheduler})
	}
}

// podOf returns the pod as the API server has it.
func (c *comparison) podOf(p cluster.Pending) *corev1.Pod {
	i := slices.IndexFunc(c.world.Pods, func(o *corev1.Pod) bool {
		return o.Namespace == p.Pod.Namespace &&
			o.Name == p.Pod.Name
	})
	return c.world.Pods[i]
}

func nameOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// one asks about one pending pod, as things are.
func (c *comparison) one(p cluster.Pending) {
	pod := c.podOf(p)
	r := c.model.pack(p)
	says, will := onItsWay, []provider.Offer(nil)
	switch {
	case r.Room > 0:
		says = exists
	case r.Nodes > 0:
		says, will = isNew, c.model.kinds(r)[0]
	case len(r.Unhelped) > 0:
		says = none
	}
	takes := c.takes(pod)
	c.disagree(whichNode, nameOf(pod), says, takes)
	if says != isNew || takes != isNew {
		return
	}
	for _, o := range will {
		c.agree(c.takesNew(pod, o), whichOffer, nameOf(pod), fmt.Sprintf("%s in %s", o.InstanceType, o.Zone),
			"not that")
	}
}

// filter returns the nodes that take a pod.
func (c *comparison) filter(pod *corev1.Pod) []string {
	return slices.DeleteFunc(c.scheduler.filter(pod).nodes, func(n string) bool { return !c.may(n) })
}

// may reports whether pods may be bound to a node, whatever they are.
func (c *comparison) may(node string) bool {
	n := c.world.node(node)
	return !c.open || n == nil || !n.Spec.Unschedulable && n.Status.Conditions[0].Status == corev1.ConditionTrue
}

// takes returns which node takes a pod: the first of the answers that is true.
func (c *comparison) takes(pod *corev1.Pod) string {
	defer c.scheduler.reset(c.world)
	coming := c.prepare()
	joins := false
	for _, n := range c.filter(pod) {
		if !c.joins(n) && !slices.Contains(coming, n) {
			return exists
		}
		joins = true
	}
	if joins || c.takesOnItsWay(pod) {
		return onItsWay
	}
	for _, o := range c.world.Pool.Offers {
		if c.takesNew(pod, o) {
			return isNew
		}
	}
	return none
}

// joins reports whether a node is one that has yet to become what it will be.
func (c *comparison) joins(node string) bool {
	n := c.world.node(node)
	if n == nil {
		return false
	}
	as, _ := joined(c.world, n)
	return as != nil
}

// prepare changes the cluster as the variation says, and returns the nodes that have come.
func (c *comparison) prepare() []string {
	c.scheduler.reset(c.world)
	if c.coming {
		return c.addOnTheWay()
	}
	return nil
}

func (c *comparison) takesOnItsWay(pod *corev1.Pod) bool {
	c.scheduler.reset(c.world)
	names := c.addOnTheWay()
	return slices.ContainsFunc(c.filter(pod), func(n string) bool { return slices.Contains(names, n) })
}

// addOnTheWay adds the nodes on their way as they will be, and returns their names.
func (c *comparison) addOnTheWay() (names []string) {
	s := c.scheduler
	for i, n := range s.nodes {
		if as, pods := joined(c.world, n); as != nil {
			s.nodes[i] = as
			s.pods = append(s.pods, pods...)
			names = append(names, n.Name)
		}
	}
	for i, p := range c.world.Pool.OnTheWay {
		names = append(names, c.add(offerOf(c.world, p), fmt.Sprint("coming-", i)))
	}
	s.look()
	return names
}

// add adds a new node.
func (c *comparison) add(o provider.Offer, name string) string {
	n, pods := launched(c.world, o, fleet.Placement{Zone: o.Zone}, name)
	c.scheduler.addNode(n, pods...)
	return name
}

// takesNew reports whether a new node takes a pod.
func (c *comparison) takesNew(pod *corev1.Pod, o provider.Offer) bool {
	defer c.scheduler.reset(c.world)
	c.prepare()
	name := c.add(o, "new")
	return slices.Contains(c.filter(pod), name)
}

// tries returns how many orders of pods are tried before the scheduler is taken to place no more:
// many where the model says that all have a place.
func tries(pods []*corev1.Pod, modelAgrees bool) int {
	switch {
	case len(pods) < 2:
		return 1
	case modelAgrees:
		return 10
	}
	return 80
}

// together asks about all pending pods.
func (c *comparison) together() {
	r := c.model.pack(c.model.cluster.Pending...)
	var pods []*corev1.Pod
	for _, p := range c.model.cluster.Pending {
		if !slices.ContainsFunc(r.Unhelped, func(u fleet.Unhelped) bool { return u.Pod == nameOf(p.Pod) }) {
			pods = append(pods, c.podOf(p))
		}
	}
	kinds := c.model.kinds(r)
	begin, ends := c.arrivals(kinds)
	left := c.places(pods, tries(pods, false), "", begin, ends...)
	c.agree(len(left) == 0, allHelped, names(pods), fmt.Sprintf("with %d new nodes", len(kinds)),
		"not "+strings.Join(left, " "))
	if len(kinds) == 0 && len(c.world.Pool.OnTheWay)+len(c.world.Pool.Joining) == 0 {
		c.count(r.Room)
	}
}

// arrivals returns what adds new nodes, and those on their way, to the cluster: at once, in every
// other try before the pods are placed that fit without them; or slowly.
func (c *comparison) arrivals(kinds [][]provider.Offer) (begin func(), ends []func()) {
	one := func(i int) { c.add(pick(&generator{Rand: c.random}, kinds[i]...), fmt.Sprint("new-", i)) }
	if c.slow {
		var order []int
		for i := range kinds {
			ends = append(ends, func() { one(order[i]) })
		}
		return func() { c.addOnTheWay(); order = c.random.Perm(len(kinds)) }, ends
	}
	all := func() {
		c.addOnTheWay()
		for i := range kinds {
			one(i)
		}
	}
	first := false
	begin = func() {
		if first = !first; first {
			all()
		}
	}
	return begin, []func(){func() {
		if !first {
			all()
		}
	}}
}

// count compares how many of the pending pods have a place on nodes that exist: at most as many as
// in the best of the orders that are tried, at least as many as in the worst.
func (c *comparison) count(room int) {
	var pods []*corev1.Pod
	for _, p := range c.model.cluster.Pending {
		pods = append(pods, c.podOf(p))
	}
	least, most := len(pods), 0
	for i := range tries(pods, false) {
		placed := len(pods) - len(c.try(pods, i, "", func() {}))
		least, most = min(least, placed), max(most, placed)
		if i >= tries(pods, true) && least <= room && room <= most {
			break
		}
	}
	c.agree(least <= room && room <= most, howManyFit, names(pods), fmt.Sprint(room),
		fmt.Sprintf("%d to %d", least, most))
}

func names(pods []*corev1.Pod) string {
	var out []string
	for _, p := range pods {
		out = append(out, nameOf(p))
	}
	return strings.Join(out, " ")
}

// homes asks about the pods of a node that is removed.
func (c *comparison) homes(n *cluster.Node) {
	if n.Blocked != "" || len(c.model.cluster.Replacements(n)) == 0 {
		return
	}
	name := n.Object.Name
	c.home(hasHomes, name, false, c.model.without(name, false), func() {})
	c.home(mayWait, name, true, c.model.without(name, true), func() {})
	if o := c.world.Pool.Offers[c.random.IntN(len(c.world.Pool.Offers))]; c.random.IntN(2) == 0 {
		says := c.model.without(name, false, fleet.Placement{Zone: o.Zone, InstanceType: o.InstanceType})
		c.home(hasNewHomes, name, false, says, func() { c.add(o, "new") })
	}
}

// home compares whether the pods of a node have homes, and those that it is promised to. All are
// evicted before the first of them has another; some may wait until the Node is deleted.
func (c *comparison) home(q question, node string, waits bool, says string, change func()) {
	var pods []*corev1.Pod
	for _, p := range c.world.podsOf(node) {
		if leaves(p) {
			pods = append(pods, replacement(p))
		}
	}
	for _, p := range c.world.pending() {
		if p.Status.NominatedNodeName == node {
			pods = append(pods, p)
		}
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(nameOf(a), nameOf(b)) })
	begin := func() {
		change()
		c.scheduler.evict(node, leaves)
	}
	var ends []func()
	if waits {
		ends = append(ends, func() { c.scheduler.remove(node) })
	}
	left := c.places(pods, tries(pods, says != ""), node, begin, ends...)
	truth := "yes"
	if len(left) > 0 {
		truth = "not " + strings.Join(left, " ")
	}
	c.agree((says == "") == (len(left) == 0), q, node, cmp.Or(says, "yes"), truth)
}

// leaves reports whether a pod leaves a node that is removed. One that is leaving already stays as it is.
func leaves(p *corev1.Pod) bool {
	class, _ := cluster.Classify(p, noon)
	return p.DeletionTimestamp == nil && class != cluster.Ignored && class != cluster.Blocking
}

// replacement returns the pod that its controller would create.
func replacement(p *corev1.Pod) *corev1.Pod {
	out := p.DeepCopy()
	out.UID += "-again"
	out.Spec.NodeName = ""
	out.Status = corev1.PodStatus{Phase: corev1.PodPending}
	out.CreationTimestamp = metav1.NewTime(noon)
	return out
}

// places returns which pods have no place in the best of some orders, none if there is an order in
// which all have one; or in the worst.
func (c *comparison) places(
	pods []*corev1.Pod, tries int, not string, begin func(), ends ...func(),
) (left []string) {
	for i := range tries {
		missing := c.try(pods, i, not, begin, ends...)
		if i == 0 || c.worst == (len(missing) > len(left)) {
			left = missing
		}
		if len(left) == 0 && !c.worst {
			return nil
		}
	}
	return left
}

// try has the scheduler place pods in an order, until no more of them has a place, and returns
// those without. Each of ends changes the cluster when no more has a place before it. The first
// orders are as they come and the largest first, each with the first node that passes; others are
// by chance.
func (c *comparison) try(pods []*corev1.Pod, i int, not string, begin func(), ends ...func()) (missing []string) {
	defer c.scheduler.reset(c.world)
	begin()
	pods = slices.Clone(pods)
	switch {
	case i == 1:
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(cpuOf(b), cpuOf(a)) })
	case i > 1:
		c.random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	}
	var random *rand.Rand
	if i%3 > 1 {
		random = c.random
	}
	for progress := true; progress || len(ends) > 0 && len(pods) > 0; {
		if !progress {
			ends[0]()
			ends = ends[1:]
		}
		progress = false
		pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
			placed := c.scheduler.place(p, random, func(n string) bool { return c.may(n) && n != not })
			progress = progress || placed
			return placed
		})
	}
	for _, p := range pods {
		missing = append(missing, nameOf(p))
	}
	return missing
}

func cpuOf(p *corev1.Pod) int64 {
	r := cluster.Requests(p)
	return r.Cpu().MilliValue()
}

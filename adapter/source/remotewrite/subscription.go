package remotewrite

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
)

// Fleet is the pods of one target, which package podtracker tracks.
type Fleet = podtracker.IndexedPods

// subscription is one Set key.
type subscription struct {
	source *Source
	key    types.NamespacedName
	config Config
	fleet  Fleet
	sink   source.Sink
	other  example // a series of one of its pods that lacks the labels

	mu           sync.Mutex // held while the sink is called
	ended        bool
	stop         func()
	keyed        *keyed
	roster       *podtracker.PodIndex
	members      map[string]*member // by pod
	tracks       map[string]*track  // by instance
	lastReceived time.Time          // when a sample was last taken, or could not be expected
	failing      bool
}

var _ podtracker.Observer = (*subscription)(nil)

func newSubscription(s *Source, key types.NamespacedName, c Config, fleet Fleet, sink source.Sink) *subscription {
	c.MatchLabels = maps.Clone(c.MatchLabels)
	return &subscription{
		source: s, key: key, config: c, fleet: fleet, sink: sink,
		members: map[string]*member{}, tracks: map[string]*track{},
		failing: true, // the sink may still have the error of an earlier subscription
	}
}

// same returns whether u, which may be nil, and v take the same samples.
func (u *subscription) same(v *subscription) bool {
	return u != nil && u.config.equal(&v.config) && u.fleet == v.fleet && u.sink == v.sink
}

func (u *subscription) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return
	}
	u.lastReceived = u.source.options.Now()
	u.keyed = u.source.index.join(u.config.Metric, u.config.PodLabel, u.key.Namespace)
	u.roster = podtracker.NewPodIndex(u.fleet)
	u.stop = u.fleet.Watch(u) // after the index, which is thus up to date when this is called
	u.follow()
}

// end ends a subscription, which may be nil. The sink is not called any more when it returns.
func (u *subscription) end() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	if u.stop == nil {
		return
	}
	u.stop()
	u.roster.Close()
	for _, m := range u.members {
		u.source.index.remove(u.keyed, m)
	}
	u.source.index.leave(u.config.Metric, u.keyed, u.key.Namespace)
	u.members, u.tracks = nil, nil
}

// Started implements podtracker.Observer.
func (u *subscription) Started(podtracker.Instance) { u.Changed() }

// Ended implements podtracker.Observer.
func (u *subscription) Ended(podtracker.Instance) { u.Changed() }

// Changed implements podtracker.Observer.
func (u *subscription) Changed() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.follow()
	}
}

// follow makes the members match the pods of the fleet, and forgets instances that are gone.
func (u *subscription) follow() {
	if u.config.Whole {
		u.followWhole()
		return
	}
	newest, ids := map[string]podtracker.Instance{}, map[string]bool{}
	for _, i := range u.fleet.Instances(time.Time{}) {
		ids[i.ID] = true
		if known, ok := newest[i.Pod.Name]; !ok || !i.Start.Before(known.Start) {
			newest[i.Pod.Name] = i
		}
	}
	for pod, m := range u.members {
		if _, ok := newest[pod]; !ok {
			u.source.index.remove(u.keyed, m)
			delete(u.members, pod)
			m.newest, m.since, m.track = "", math.MaxInt64, nil // for samples that are on their way
		}
	}
	for pod, i := range newest {
		m := u.members[pod]
		if m == nil {
			m = &member{subscription: u, pod: pod, order: u.source.order.Add(1)}
			u.members[pod] = m
			u.source.index.add(u.keyed, m)
		}
		m.newest, m.since, m.track = i.ID, i.Start.UnixMilli(), u.tracks[i.ID]
	}
	maps.DeleteFunc(u.tracks, func(id string, _ *track) bool { return !ids[id] })
}

// followWhole has the one series taken, whichever pods there are.
func (u *subscription) followWhole() {
	if len(u.members) == 0 {
		m := &member{subscription: u, newest: source.WholeTarget, order: u.source.order.Add(1)}
		u.members[m.pod] = m
		u.source.index.add(u.keyed, m)
	}
}

// take takes the readings of one pod in a request, in order of time.
func (u *subscription) take(readings []reading, b *batch) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		b.tally.add(unselected, len(readings))
		return
	}
	if u.config.Whole {
		u.takeOf(source.WholeTarget, readings, b)
		return
	}
	for len(readings) > 0 {
		id, n := u.instanceOf(readings)
		if id == "" {
			b.tally.add(unknownPod, n)
		} else {
			u.takeOf(id, readings[:n], b)
		}
		readings = readings[n:]
	}
}

// instanceOf returns the instance of the first reading, "" if it is unknown, and how many readings it has in a row.
func (u *subscription) instanceOf(readings []reading) (id string, n int) {
	for n = range readings {
		m, t := readings[n].member, readings[n].t
		of := m.newest
		if t < m.since {
			of, _ = u.roster.Find(m.pod, t)
		}
		if n > 0 && of != id {
			return id, n
		}
		id = of
	}
	return id, len(readings)
}

func (u *subscription) takeOf(instance string, readings []reading, b *batch) {
	k := u.trackOf(instance, readings[0].member)
	b.samples = b.samples[:0]
	received := false
	for i := range readings {
		x := &readings[i]
		s, give, r := k.take(x.sample, x.identity, &u.config, b.now)
		received = received || r == taken
		if give {
			b.samples = append(b.samples, s)
		}
		b.judge(x, r, k, u)
	}
	if len(b.samples) > 0 {
		k.receiver.Append(b.samples...)
	}
	if err := k.failing(len(b.samples) > 0); err != nil {
		u.sink.Fail(instance, err)
	}
	if received {
		u.receive(b.received)
	}
}

// trackOf returns the track of an instance of a member.
func (u *subscription) trackOf(instance string, m *member) *track {
	if instance == m.newest && m.track != nil {
		return m.track
	}
	k := u.tracks[instance]
	if k == nil {
		k = &track{receiver: source.ReceiverOf(u.sink, instance)}
		u.tracks[instance] = k
	}
	if instance == m.newest {
		m.track = k
	}
	return k
}

// silenceReported is how long a subscription with active pods may lack samples before it reports that.
const silenceReported = 30 * time.Second

// receive records that samples were taken.
func (u *subscription) receive(now time.Time) {
	u.lastReceived = now
	if u.failing {
		u.failing = false
		u.sink.SourceFailed(nil)
	}
}

// reportSilence reports to the sink if no sample has been taken for long. If forget is set it clears the example.
func (u *subscription) reportSilence(now time.Time, forget bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if forget {
		defer u.other.clear()
	}
	if u.ended || u.roster == nil {
		return
	}
	if !u.config.Whole && !u.roster.AnyActive() {
		u.lastReceived = now // no samples are expected
		return
	}
	if quiet := now.Sub(u.lastReceived); quiet >= silenceReported {
		u.failing = true
		u.sink.SourceFailed(u.silenceError(quiet))
	}
}

// silenceError describes the expected series, and those of the namespace that arrived instead. Of others it tells nothing.
func (u *subscription) silenceError(quiet time.Duration) error {
	var b strings.Builder
	label := u.source.options.Tenancy.NamespaceLabel
	whose := " for a pod of the target"
	if u.config.Whole {
		whose = ""
	}
	fmt.Fprintf(&b, "no sample of %s has been pushed%s for %s", u.config.selector(label, u.key.Namespace), whose, quiet.Round(time.Second))
	tell := func(e *example, what string) {
		if text := e.get(); text != "" {
			fmt.Fprintf(&b, "; %s, such as %s", what, text)
		}
	}
	tell(&u.other, u.config.others())
	t, unlabelled := u.source.index.arrived(u.config.Metric, u.key.Namespace)
	tell(&t.withoutPod, fmt.Sprintf("series arrived without the label %s", u.config.PodLabel))
	tell(&t.unknownPod, "series arrived for other pods")
	if unlabelled {
		fmt.Fprintf(&b, "; series arrived without the label %s, and are nobody's", label)
	}
	if unlabelled || t.withoutPod.get() != "" {
		b.WriteString("; OTLP takes the namespace and the pod from the resource alone, " +
			"as the processor k8sattributes sets them")
	}
	return fmt.Errorf("%s", b.String())
}

package remotewrite

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
)

// Fleet is the pods of one target, which package podtracker tracks.
type Fleet = podtracker.IndexedPods

// silenceReported is the time for which a subscription with active pods may lack samples before it reports that.
const silenceReported = 30 * time.Second

// subscription is one Set key.
type subscription struct {
	index  *index[*member]
	key    types.NamespacedName
	config Config
	fleet  Fleet
	sink   source.Sink
	other  example // a series of one of its pods that lacks the labels

	mu           sync.Mutex // held while the sink is called
	ended        bool
	stop         func()
	metric       *metricIndex[*member]
	instances    *podtracker.PodIndex
	members      map[string]*member // by name; "": the target as a whole
	tracks       map[string]*track  // by instance
	lastReceived time.Time          // when a sample was last taken, or could not be expected
	failing      bool
}

// member is a pod of a subscription, or its target as a whole. There may be 100,000, which requests visit in no
// order: it fits in one cache line of 64 bytes.
type member struct {
	subscription *subscription
	pod          string // "": the target as a whole
	order        uint64 // unique

	// Guarded by the subscription's mu:
	newest string // the last of the pod's instances, to which nearly all samples belong
	since  int64  // its start (ms)
	track  *track // of the newest; nil before its first sample
}

// reading is a sample for one member.
type reading struct {
	decode.Sample
	member   *member
	ordinal  int32  // of the sample in the request
	identity []byte // of its series
}

func newSubscription(x *index[*member], key types.NamespacedName, c Config, fleet Fleet,
	sink source.Sink) *subscription {
	c.MatchLabels = maps.Clone(c.MatchLabels)
	return &subscription{
		index: x, key: key, config: c, fleet: fleet, sink: sink,
		members: map[string]*member{}, tracks: map[string]*track{},
		failing: true, // the sink may still have the error of an earlier subscription
	}
}

// same reports whether u, which may be nil, and v take the same samples.
func (u *subscription) same(v *subscription) bool {
	return u != nil && u.config.equal(&v.config) && u.fleet == v.fleet && u.sink == v.sink
}

func (u *subscription) begin(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return
	}
	u.lastReceived = now
	u.metric = u.index.join(u.config.Metric, u.config.PodLabel, u.key.Namespace)
	u.instances = podtracker.NewPodIndex(u.fleet)
	u.stop = u.fleet.Watch(u.update) // after the index, which is thus up to date when this is called
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
	u.instances.Close()
	for _, m := range u.members {
		u.index.remove(u.metric, m.pod, m)
	}
	u.index.leave(u.config.Metric, u.metric, u.key.Namespace)
	u.members, u.tracks = nil, nil
}

func (u *subscription) update() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.follow()
	}
}

// follow makes the members match the pods of the fleet, and drops instances that are gone.
func (u *subscription) follow() {
	if u.config.Whole {
		if len(u.members) == 0 {
			u.addMember("").newest = source.WholeTarget // whichever pods there are
		}
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
			u.index.remove(u.metric, m.pod, m)
			delete(u.members, pod)
			m.newest, m.since, m.track = "", math.MaxInt64, nil // for samples that are on their way
		}
	}
	for pod, i := range newest {
		m := u.members[pod]
		if m == nil {
			m = u.addMember(pod)
		}
		m.newest, m.since, m.track = i.ID, i.Start.UnixMilli(), u.tracks[i.ID]
	}
	maps.DeleteFunc(u.tracks, func(id string, _ *track) bool { return !ids[id] })
}

func (u *subscription) addMember(pod string) *member {
	m := &member{subscription: u, pod: pod, order: u.index.newOrder()}
	u.members[pod] = m
	u.index.add(u.metric, pod, m)
	return m
}

// selects reports whether a series of a member is read. It keeps the series as an example if not.
func (u *subscription) selects(l decode.Labels) bool {
	if u.config.matches(l) {
		return true
	}
	u.other.note(l)
	return false
}

// take takes the readings of one member in a request, in order of time.
func (u *subscription) take(m *member, readings []reading, to *receipt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		to.tally.add(unselected, len(readings))
		return
	}
	if u.config.Whole {
		u.takeOf(m, source.WholeTarget, readings, to)
		return
	}
	for len(readings) > 0 {
		id, n := u.instanceOf(m, readings)
		if id == "" {
			to.tally.add(unknownPod, n)
		} else {
			u.takeOf(m, id, readings[:n], to)
		}
		readings = readings[n:]
	}
}

// instanceOf returns the instance of the first reading of a pod, "" if it is unknown, and the number of
// readings that it has in a row.
func (u *subscription) instanceOf(m *member, readings []reading) (id string, n int) {
	for n = range readings {
		of := m.newest
		if t := readings[n].T; t < m.since {
			of, _ = u.instances.Find(m.pod, t)
		}
		if n > 0 && of != id {
			return id, n
		}
		id = of
	}
	return id, len(readings)
}

// takeOf takes the readings of one instance of a pod.
func (u *subscription) takeOf(m *member, instance string, readings []reading, to *receipt) {
	k := u.trackOf(m, instance)
	to.scratch = to.scratch[:0]
	received := false
	for i := range readings {
		x := &readings[i]
		s, give, r := k.take(x.Sample, x.identity, &u.config, to.now)
		received = received || r == taken
		if give {
			to.scratch = append(to.scratch, s)
		}
		u.record(x, r, k, to)
	}
	if len(to.scratch) > 0 {
		k.receiver.Append(to.scratch...)
	}
	if err := k.failing(len(to.scratch) > 0); err != nil {
		u.sink.Fail(instance, err)
	}
	if received {
		u.receive(to.received)
	}
}

// trackOf returns the track of an instance of a pod.
func (u *subscription) trackOf(m *member, instance string) *track {
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

// record records the result of a reading.
func (u *subscription) record(x *reading, r result, k *track, to *receipt) {
	if !r.rejected() {
		to.tally.add(r, 1)
		return
	}
	to.reject(x.ordinal)
	if to.tally.examples[r] != nil {
		to.tally.add(r, 1)
		return
	}
	to.tally.reject(r, 1, u.describe(x, r, k))
}

// describe returns why a reading is rejected.
func (u *subscription) describe(x *reading, r result, k *track) error {
	whose := " of pod " + x.member.pod
	if u.config.Whole {
		whose = ""
	}
	switch r {
	case duplicateSeries:
		return fmt.Errorf("%s%s: %w", u.config.Metric, whose, k.duplicate(x.T, x.identity))
	case tooOld:
		behind := time.Duration(k.newest-x.T) * time.Millisecond
		return fmt.Errorf("%s%s: %s behind the newest sample", u.config.Metric, whose, behind)
	}
	return fmt.Errorf("%s%s: %w", u.config.Metric, whose, k.failure)
}

// receive records that samples were taken.
func (u *subscription) receive(now time.Time) {
	u.lastReceived = now
	if u.failing {
		u.failing = false
		u.sink.SourceFailed(nil)
	}
}

// reportSilence reports to the sink if no sample has been taken for silenceReported. If clearExample is set it
// then clears the example.
func (u *subscription) reportSilence(now time.Time, clearExample bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if clearExample {
		defer u.other.clear()
	}
	if u.ended || u.instances == nil {
		return
	}
	if !u.config.Whole && !u.instances.AnyActive() {
		u.lastReceived = now // no samples are expected
		return
	}
	if quiet := now.Sub(u.lastReceived); quiet >= silenceReported {
		u.failing = true
		u.sink.SourceFailed(u.silenceError(quiet))
	}
}

// silenceError describes the expected series, and those of the namespace that arrived instead. It mentions no
// series of other namespaces.
func (u *subscription) silenceError(quiet time.Duration) error {
	var b strings.Builder
	label := u.index.tenancy.NamespaceLabel
	whose := " for a pod of the target"
	if u.config.Whole {
		whose = ""
	}
	fmt.Fprintf(&b, "no sample of %s has been pushed%s for %s",
		u.config.selector(label, u.key.Namespace), whose, quiet.Round(time.Second))
	add := func(e *example, what string) {
		if text := e.get(); text != "" {
			fmt.Fprintf(&b, "; %s, such as %s", what, text)
		}
	}
	add(&u.other, u.config.others())
	t, unlabelled := u.index.arrived(u.config.Metric, u.key.Namespace)
	add(&t.withoutPod, fmt.Sprintf("series arrived without the label %s", u.config.PodLabel))
	add(&t.unknownPod, "series arrived for other pods")
	if unlabelled {
		fmt.Fprintf(&b, "; series arrived without the label %s, and belong to no pod", label)
	}
	if unlabelled || t.withoutPod.get() != "" {
		b.WriteString("; OTLP takes the namespace and the pod from the resource alone, " +
			"as the processor k8sattributes sets them")
	}
	return errors.New(b.String())
}

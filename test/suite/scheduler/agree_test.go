// Package scheduler holds Foresail's model of a cluster against kube-scheduler: small random
// clusters, in which every answer of nodepool/cluster/scheduling is compared with that of
// kube-scheduler's own plugins, used as a library.
//
// A module of its own, as it depends on k8s.io/kubernetes. The oldest version whose plugins build
// with the libraries of this tree is in oldest.mod: 1.35. Older ones lack what nodepool/cluster and
// internal/objectcache import. Its API has no spec.schedulingGroup, so oldest.json replaces the one
// file of nodepool/cluster that reads it:
//
//	go test -C test/suite/scheduler -tags oldest -modfile oldest.mod -overlay oldest.json . -args -worlds 200
package scheduler

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

var (
	worlds  = flag.Uint64("worlds", 500, "how many worlds to compare")
	seed    = flag.Uint64("seed", 0, "the seed of the first world")
	file    = flag.String("world", "", "compare the world in this file instead, as a failure printed it")
	without = flag.String("without", "", "features that no world has, separated by commas")
	most    = flag.Int("most", 5, "stop after so many disagreements of a question")
)

// TestModelAgreesWithScheduler compares all worlds. For each disagreement it prints the seed, and
// the smallest world it finds in which the two disagree as well. To repeat one: go test -C
// test/suite/scheduler -args -seed N -worlds 1.
func TestModelAgreesWithScheduler(t *testing.T) {
	if *file != "" {
		w, err := readWorld(*file)
		require.NoError(t, err)
		found, _, err := compare(t.Context(), w, variation{})
		require.NoError(t, err)
		for _, d := range found {
			t.Errorf("%s (known: %q)", d, reasonOf(t.Context(), w, d))
		}
		return
	}
	r := &run{t: t, found: map[string]int{}}
	var workers sync.WaitGroup
	var next atomic.Uint64
	begun := time.Now()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < *worlds; i = next.Add(1) - 1 {
				r.compare(t.Context(), *seed+i)
				if done := i + 1; done%500 == 0 {
					fmt.Fprintf(os.Stderr, "%d of %d worlds compared after %s\n", done, *worlds,
						time.Since(begun).Round(time.Second))
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d worlds from seed %d, %d answers compared", *worlds, *seed, r.answers.Load())
	for _, k := range slices.Sorted(maps.Keys(r.found)) {
		t.Logf("%6d %s", r.found[k], k)
	}
	for _, d := range differences {
		if r.found["known: "+d.name] == 0 && *worlds >= 10000 {
			t.Errorf("a difference that does not occur any more: %s", d.name)
		}
	}
}

// run collects the disagreements of many worlds.
type run struct {
	t       *testing.T
	answers atomic.Int64
	mutex   sync.Mutex
	found   map[string]int
}

func (r *run) compare(ctx context.Context, seed uint64) {
	var skip []string
	if *without != "" {
		skip = strings.Split(*without, ",")
	}
	w, err := generate(ctx, seed, skip)
	if err == nil {
		var found []disagreement
		var asked int
		found, asked, err = compare(ctx, w, variation{})
		r.answers.Add(int64(asked))
		for _, d := range found {
			r.note(ctx, w, d)
		}
	}
	if err != nil {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.t.Errorf("seed %d: %v", seed, err)
	}
}

// note counts a disagreement, and prints it unless it is known.
func (r *run) note(ctx context.Context, w *world, d disagreement) {
	key := reasonOf(ctx, w, d)
	r.mutex.Lock()
	if key == "" {
		key = "NOT KNOWN: " + string(d.question)
	} else {
		key = "known: " + key
	}
	r.found[key]++
	printed := strings.HasPrefix(key, "known") || r.found[key] > *most
	r.mutex.Unlock()
	if printed {
		return
	}
	small := shrink(ctx, w, d)
	found, _, _ := compare(ctx, small, variation{})
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.t.Errorf("seed %d: %s\nin the smallest world: %s\n%s", w.Seed, d, fmt.Sprint(found), small)
}

// shrink removes from a world what does not matter to a disagreement.
func shrink(ctx context.Context, w *world, d disagreement) *world {
	remains := func(w *world) bool {
		found, _, err := compare(ctx, w, variation{only: &d})
		return err == nil && slices.ContainsFunc(found, func(o disagreement) bool {
			return d.alike(o) && reasonOf(ctx, w, o) == ""
		})
	}
	for progress := true; progress; {
		progress = false
		for _, smaller := range simpler(w) {
			if remains(smaller) {
				w, progress = smaller, true
				break
			}
		}
	}
	return w
}

// simpler returns worlds that lack one thing of a world.
func simpler(w *world) []*world {
	var out []*world
	add := func(change func(*world)) {
		smaller := w.copy()
		change(smaller)
		out = append(out, smaller)
	}
	for i := range w.Nodes {
		add(func(w *world) {
			name := w.Nodes[i].Name
			w.Nodes = slices.Delete(w.Nodes, i, i+1)
			w.Pods = slices.DeleteFunc(w.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == name })
			delete(w.Pool.Joining, name)
		})
	}
	for i := range w.Pods {
		add(func(w *world) { w.Pods = slices.Delete(w.Pods, i, i+1) })
	}
	if len(w.Pool.Offers) > 1 {
		for i := range w.Pool.Offers {
			if len(w.Pool.OnTheWay)+len(w.Pool.Joining) == 0 {
				add(func(w *world) { w.Pool.Offers = slices.Delete(w.Pool.Offers, i, i+1) })
			}
		}
	}
	for i := range w.DaemonSets {
		add(func(w *world) { w.DaemonSets = slices.Delete(w.DaemonSets, i, i+1) })
	}
	for i := range w.Pool.OnTheWay {
		add(func(w *world) { w.Pool.OnTheWay = slices.Delete(w.Pool.OnTheWay, i, i+1) })
	}
	for i := range w.Pods {
		for _, change := range simplerPods(w.Pods[i]) {
			add(func(w *world) { change(w.Pods[i]) })
		}
	}
	for i := range w.Nodes {
		for j := range w.Nodes[i].Spec.Taints {
			add(func(w *world) { w.Nodes[i].Spec.Taints = slices.Delete(w.Nodes[i].Spec.Taints, j, j+1) })
		}
	}
	return out
}

// simplerPods returns what makes a pod simpler.
func simplerPods(p *corev1.Pod) (out []func(*corev1.Pod)) {
	s := &p.Spec
	add := func(has bool, change func(*corev1.Pod)) {
		if has {
			out = append(out, change)
		}
	}
	add(len(s.InitContainers) > 0, func(p *corev1.Pod) { p.Spec.InitContainers = nil })
	add(len(s.Containers) > 1, func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] })
	add(len(s.Containers[0].Resources.Requests) > 0, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = nil
		p.Spec.Containers[0].Resources.Limits = nil
	})
	add(len(s.Containers[0].Ports) > 0, func(p *corev1.Pod) { p.Spec.Containers[0].Ports = nil })
	add(s.Resources != nil, func(p *corev1.Pod) { p.Spec.Resources = nil })
	add(s.Overhead != nil, func(p *corev1.Pod) { p.Spec.Overhead = nil })
	add(len(s.Tolerations) > 0, func(p *corev1.Pod) { p.Spec.Tolerations = nil })
	add(len(s.NodeSelector) > 0, func(p *corev1.Pod) { p.Spec.NodeSelector = nil })
	add(len(s.Volumes) > 0, func(p *corev1.Pod) { p.Spec.Volumes = nil })
	add(len(s.ResourceClaims) > 0, func(p *corev1.Pod) { p.Spec.ResourceClaims = nil })
	add(p.DeletionTimestamp != nil, func(p *corev1.Pod) { p.DeletionTimestamp = nil })
	add(p.Status.NominatedNodeName != "", func(p *corev1.Pod) { p.Status.NominatedNodeName = "" })
	for i := range s.TopologySpreadConstraints {
		add(true, func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = slices.Delete(p.Spec.TopologySpreadConstraints, i, i+1)
		})
		add(s.TopologySpreadConstraints[i].MinDomains != nil,
			func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[i].MinDomains = nil })
		add(s.TopologySpreadConstraints[i].NodeAffinityPolicy != nil,
			func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[i].NodeAffinityPolicy = nil })
		add(s.TopologySpreadConstraints[i].NodeTaintsPolicy != nil,
			func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[i].NodeTaintsPolicy = nil })
	}
	if a := s.Affinity; a != nil {
		add(a.NodeAffinity != nil, func(p *corev1.Pod) { p.Spec.Affinity.NodeAffinity = nil })
		if a.PodAffinity != nil {
			add(true, func(p *corev1.Pod) { p.Spec.Affinity.PodAffinity = nil })
		}
		if a.PodAntiAffinity != nil {
			add(true, func(p *corev1.Pod) { p.Spec.Affinity.PodAntiAffinity = nil })
		}
	}
	return out
}

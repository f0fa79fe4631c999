package poolbench

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/simulated"
)

// The load of a BenchmarkRamp: nothing new for a while, a straight climb, and what is left until
// all pods run.
const (
	flatFor   = 30 * time.Second
	climbFor  = 2 * time.Minute
	fewest    = 12
	highest   = 48
	joinDelay = time.Minute
)

// contestants are pools that differ in nothing but how they look ahead.
var contestants = []struct {
	id string
	variant
}{
	{"forecast", variant{name: "forecast, 80%", threshold: "800m"}},
	{"present", variant{name: "present load, 80%", threshold: "800m", present: true}},
	// A threshold that no load comes to: the signal never asks.
	{"pending", variant{name: "pending pods alone", threshold: "1000", present: true}},
}

// BenchmarkRamp has pools on a real control plane run the same ramp at once, each for pods of its own.
func BenchmarkRamp(b *testing.B) {
	for range b.N {
		s := startSite(b)
		r := &race{site: s, seen: map[types.UID]*runner{}, paid: map[string]time.Duration{},
			launched: map[string]map[string]bool{}}
		r.watchPods(b, r.see, r.gone)
		for _, c := range contestants {
			r.prepare(b, c.id, c.variant)
		}
		require.NoError(b, until(b.Context(), "the first pods run", 4*time.Minute,
			func() (bool, error) { return r.running() == len(contestants)*fewest, nil }))
		r.play(b)
		r.report(b)
	}
	b.ReportMetric(0, "ns/op")
}

// race is one benchmark.
type race struct {
	*site
	mu       sync.Mutex
	began    time.Time
	ended    time.Time
	seen     map[types.UID]*runner
	paid     map[string]time.Duration
	launched map[string]map[string]bool
}

// runner is a pod.
type runner struct {
	pool        string
	made, bound time.Time // bound is zero while no node has taken it
}

func (r *race) see(p *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	one := r.seen[p.UID]
	if one == nil {
		one = &runner{pool: p.Labels[poolLabel], made: now}
		r.seen[p.UID] = one
	}
	if one.bound.IsZero() && p.Spec.NodeName != "" {
		one.bound = now
	}
}

func (r *race) gone(p *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, p.UID)
}

func (r *race) running() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.seen {
		if !one.bound.IsZero() {
			n++
		}
	}
	return n
}

// prepare makes a pool and the Deployment whose pods only its nodes take.
func (r *race) prepare(b *testing.B, id string, v variant) {
	of := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	batch := int32(100)
	shape := map[string]resource.Quantity{}
	for name, quantity := range nodeShape {
		shape[string(name)] = quantity
	}
	spec := v1alpha1.WorkerPoolSpec{
		Min: 2, Max: 20, MaxBatchUp: &batch,
		Signals:    []v1alpha1.PoolSignal{{Name: "requests", Threshold: resource.MustParse(v.threshold)}},
		PendingFor: of(5 * time.Second),
		Cooldown:   v1alpha1.PoolCooldown{Up: of(0)},
		Interval:   of(5 * time.Second), StartupTime: of(joinDelay),
		Template: v1alpha1.NodeTemplate{Labels: map[string]string{poolLabel: id}},
		Provider: v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{JoinDelay: of(joinDelay), Shape: shape}},
	}
	if v.present {
		spec.Forecast = v1alpha1.PoolForecastDisabled
	}
	require.NoError(b, r.objects.Create(b.Context(),
		&v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: spec}))
	labels, replicas := map[string]string{poolLabel: id}, int32(fewest)
	_, err := r.Client().AppsV1().Deployments(namespace).Create(b.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: labels,
				Containers: []corev1.Container{{Name: "app", Image: "example.com/app",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU:    podRequests[corev1.ResourceCPU],
						corev1.ResourceMemory: podRequests[corev1.ResourceMemory],
					}}}},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(b, err)
}

// play has all Deployments climb together, until all their pods run.
func (r *race) play(b *testing.B) {
	r.mu.Lock()
	r.began = time.Now()
	r.mu.Unlock()
	last, looked := fewest, r.began
	require.NoError(b, until(b.Context(), "all pods run", flatFor+climbFor+3*time.Minute, func() (bool, error) {
		now := time.Now()
		if n := replicasAt(now.Sub(r.began)); n != last {
			last = n
			for _, c := range contestants {
				patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
				_, err := r.Client().AppsV1().Deployments(namespace).Patch(b.Context(), c.id, types.MergePatchType,
					patch, metav1.PatchOptions{}, "scale")
				if err != nil {
					return false, err
				}
			}
		}
		r.pay(b, now.Sub(looked))
		looked = now
		return now.Sub(r.began) > flatFor+climbFor && r.running() == len(contestants)*highest, nil
	}))
	r.ended = time.Now()
}

func replicasAt(at time.Duration) int {
	share := min(1, max(0, float64(at-flatFor)/float64(climbFor)))
	return fewest + int(math.Round(share*(highest-fewest)))
}

// pay adds up what the instances of pools cost.
func (r *race) pay(b *testing.B, since time.Duration) {
	for _, c := range contestants {
		all, err := simulated.New(simulated.Options{Client: r.Client(), Pool: c.id, Now: time.Now}).List(b.Context())
		require.NoError(b, err)
		r.paid[c.id] += time.Duration(len(all)) * since
		if r.launched[c.id] == nil {
			r.launched[c.id] = map[string]bool{}
		}
		for _, i := range all {
			r.launched[c.id][i.ID] = true
		}
	}
}

func (r *race) report(b *testing.B) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rows []named
	for _, c := range contestants {
		o := outcome{nodeTime: r.paid[c.id], launches: len(r.launched[c.id]), peak: len(r.launched[c.id])}
		for _, one := range r.seen {
			if one.pool == c.id && one.made.After(r.began) {
				o.waits = append(o.waits, one.bound.Sub(one.made))
			}
		}
		rows = append(rows, named{c.name, o})
		b.ReportMetric(o.total().Seconds(), c.id+"-pending-pod-s")
		b.ReportMetric(o.quantile(0.9).Seconds(), c.id+"-p90-s")
		b.ReportMetric(o.nodeTime.Hours(), c.id+"-node-h")
	}
	var table strings.Builder
	title := fmt.Sprintf("%d to %d pods in %s, nodes join in %s ± 20%%, on a real control plane, %s in all", fewest,
		highest, climbFor, joinDelay, r.ended.Sub(r.began).Round(time.Second))
	printTable(&table, title, rows)
	b.Log("\n" + table.String())
	var pools v1alpha1.WorkerPoolList
	require.NoError(b, r.objects.List(b.Context(), &pools, &client.ListOptions{}))
	for _, p := range pools.Items {
		for _, d := range p.Status.Decisions {
			if d.Step != "Hold" {
				b.Logf("%s %s +%.0fs %s", p.Name, d.Step, d.Time.Sub(r.began).Seconds(), d.Message)
			}
		}
	}
}

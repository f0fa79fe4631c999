package extender

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
)

// arrival is a pod that comes, does its work for a while, and is not to be disturbed meanwhile.
type arrival struct {
	at, lasts time.Duration // since the begin; from when it is bound
	milli     int64         // CPU that it requests, of which it uses half
}

// arrivals are the same for one seed. A wave of them comes every two minutes.
func arrivals(seed uint64, span time.Duration) []arrival {
	random := rand.New(rand.NewPCG(seed, 7))
	var out []arrival
	for at := time.Duration(0); ; {
		gap := time.Second
		if at%(2*time.Minute) < 40*time.Second {
			gap = 300 * time.Millisecond
		}
		at += time.Duration(random.ExpFloat64() * float64(gap))
		if at > span {
			return out
		}
		mean, most := 10*time.Second, 20*time.Second
		if random.Float64() < 0.15 {
			mean, most = most, 60*time.Second // some stay for long
		}
		lasts := min(2*time.Second+time.Duration(random.ExpFloat64()*float64(mean)), most)
		out = append(out, arrival{
			at: at, lasts: lasts, milli: 200 + 100*random.Int64N(9),
		})
	}
}

// bill is what a pool has cost, and how it has served.
type bill struct {
	pods        int
	nodeSeconds float64
	peak        int
	removed     int
	waited      []time.Duration
}

// TestPackingEmptiesNodes has the same pods come to two pools at once, one of which the default
// scheduler places pods on. None of the pods may be moved, so that a node can only be removed when
// it has come to be empty by itself.
func TestPackingEmptiesNodes(t *testing.T) {
	t.Parallel()
	span, pace := 80*time.Second, time.Duration(2) // everything is so many times as fast
	if *long {
		span, pace = 10*time.Minute, 1
	}
	interval, warmUp := 2*time.Second/pace, 5*time.Second/pace
	f := startForesail(t,
		"test:extender-metrics-interval="+interval.String(), "test:extender-horizon="+(5*interval).String(), "test:extender-warm-up="+warmUp.String())
	uses.every(t, interval)
	variants := []struct {
		name   string
		config []byte
	}{{"default", plain(t)}, {"packing", asking(t, f.address, patient)}}
	bills := make([]bill, len(variants))
	var running errgroup.Group
	for i, variant := range variants {
		s := newStage(t, "pack-"+variant.name)
		scheduler := startScheduler(t, s.name, variant.config)
		seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second / pace} }
		share := resource.MustParse("750m")
		s.createPool(1, 16, worker, func(p *v1alpha1.WorkerPoolSpec) {
			p.Signals[0].Threshold = resource.MustParse("900m")
			p.Idle = v1alpha1.IdlePolicy{For: seconds(5), CPU: &share, Memory: &share}
			p.Cooldown = v1alpha1.PoolCooldown{Up: &metav1.Duration{Duration: time.Second}, Down: seconds(2)}
			p.Provider.Simulated.JoinDelay = seconds(4)
		})
		s.workers(1)
		running.Go(func() (err error) {
			bills[i], err = s.play(scheduler.Name, arrivals(1, span), span, pace)
			return err
		})
	}
	require.NoError(t, running.Wait())
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scheduler\tpods\tnode hours\tmost nodes\tnodes removed\twaited p50\tp95\tmax")
	for i, b := range bills {
		slices.Sort(b.waited)
		at := func(share float64) time.Duration {
			return b.waited[int(share*float64(len(b.waited)-1))].Round(10 * time.Millisecond)
		}
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%d\t%d\t%s\t%s\t%s\n", variants[i].name, b.pods, b.nodeSeconds/3600, b.peak,
			b.removed, at(0.5), at(0.95), at(1))
	}
	require.NoError(t, w.Flush())
	t.Logf("the same arrivals in %s, and %s more, %d times as fast:\n%s%.0f%% of the node hours", span, tail, pace,
		table.String(), 100*bills[1].nodeSeconds/bills[0].nodeSeconds)
	for _, b := range bills {
		assert.Positive(t, b.nodeSeconds)
		assert.Equal(t, len(arrivals(1, span)), b.pods, "pods that ran")
	}
	assert.Positive(t, bills[1].removed, "nodes that have come to be empty by themselves")
}

// tail is for how long the bill of a pool goes on after the last arrival.
const tail = 30 * time.Second

// play has the pods come and go, everything so many times as fast as they say. It is not for the
// goroutine of the test: nothing in it ends the test. A pod has a goroutine of its own: an API
// server that is slow to create one must not keep others, or the count of nodes, waiting.
func (s *stage) play(scheduler string, come []arrival, span, pace time.Duration) (bill, error) {
	billed := (span + tail) / pace
	w := s.watch("work")
	begun := time.Now()
	var b bill
	var running errgroup.Group
	for i, a := range come {
		pod := s.pod(fmt.Sprintf("work-%d", i), spec{
			app: "work", scheduler: scheduler, cpu: fmt.Sprintf("%dm", a.milli), memory: fmt.Sprintf("%dMi", a.milli),
			uses: use{0.0005 * float64(a.milli), 0.5 * float64(a.milli) * (1 << 20)},
		})
		running.Go(func() error {
			time.Sleep(time.Until(begun.Add(a.at / pace)))
			return s.live(w, pod, a.lasts/pace, begun.Add(billed+2*patience))
		})
	}
	running.Go(func() error {
		s.count(&b, begun.Add(billed))
		return nil
	})
	if err := running.Wait(); err != nil {
		return b, err
	}
	for _, fate := range w.podFates() {
		b.pods++
		b.waited = append(b.waited, fate.bound.at.Sub(fate.created.at))
	}
	for _, fate := range w.marked() {
		if fate.gone.version > 0 {
			b.removed++
		}
	}
	return b, nil
}

// live creates a pod, and deletes it once it has been on a node for long enough.
func (s *stage) live(w *witness, pod *corev1.Pod, lasts time.Duration, deadline time.Time) error {
	client := cluster.Client().CoreV1().Pods(s.name)
	if _, err := client.Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	bound := time.Time{}
	if !s.within(time.Until(deadline), func() bool {
		bound = w.boundAt(pod.Name)
		return !bound.IsZero()
	}) {
		return fmt.Errorf("%s has not run", pod.Name)
	}
	time.Sleep(time.Until(bound.Add(lasts)))
	if err := client.Delete(s.Context(), pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
		return fmt.Errorf("a pod has not been left alone: %w", err)
	}
	return nil
}

// count bills the nodes that there are until a moment.
func (s *stage) count(b *bill, end time.Time) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for last := time.Now(); last.Before(end); {
		now := <-ticker.C
		there := 0
		for _, object := range uses.nodes.GetStore().List() {
			if object.(*corev1.Node).Labels[stageLabel] == s.name {
				there++
			}
		}
		b.nodeSeconds += float64(there) * now.Sub(last).Seconds()
		last, b.peak = now, max(b.peak, there)
	}
}

package extenderbench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/etcdseed"
	"github.com/foresail/foresail/test/env/foresail"
)

var (
	burst = flag.Int("burst", 2000, "how many pods there are at once for a scheduler to bind")
	share = flag.Int("percentage", 0,
		"percentageOfNodesToScore of both schedulers; 0 is theirs, which is a tenth of 5,000 nodes")
	rounds = flag.Int("rounds", 5, "how many bursts each scheduler is measured with")
)

// BenchmarkThroughput has two kube-schedulers take bursts of pods in turn, one with an extender and
// one without, and tells how many pods a second each has bound. They run all the time, so that what
// it costs to watch the cluster is in both figures. The extender is foresail, or one that lets pass
// and scores alike whatever it is asked: what is lost with that is the scheduler's own.
func BenchmarkThroughput(b *testing.B) {
	program := buildForesail(b)
	c := crowd{nodes: nodesOfCrowd, podsOnNode: 2, born: time.Now().Add(-time.Hour).Truncate(time.Second)}
	cluster := startSite(b, c)
	plain := startScheduler(b, cluster, "plain", "")
	b.Run("extender=foresail", func(b *testing.B) {
		f, _ := startForesail(b, cluster, program)
		s := startScheduler(b, cluster, "extended", f.address)
		f.waitForecasts(b)
		before, spent := f.MustMetrics(b), f.MustUsage(b)
		wait := f.profile(b, "throughput", 60*time.Second)
		bound := compare(b, cluster, c, plain, s)
		wait()
		now := f.MustUsage(b)
		reportOwn(b, before, f.MustMetrics(b))
		b.ReportMetric(float64((now.CPU-spent.CPU).Microseconds())/float64(bound), "cpu-µs/pod")
		b.ReportMetric(float64(now.Resident)/mebibyte, "MiB-resident")
		b.ReportMetric(float64(now.Peak)/mebibyte, "MiB-peak")
	})
	b.Run("extender=idle", func(b *testing.B) {
		compare(b, cluster, c, plain, startScheduler(b, cluster, "idle", serveIdle(b)))
	})
}

func startScheduler(b *testing.B, cluster *controlplane.Cluster, name, extender string) string {
	b.Helper()
	s, err := cluster.StartScheduler(b.Context(), name, []byte(schedulerConfig(extender)))
	require.NoError(b, err)
	foresail.EndWith(b, s.Name, s.Process)
	return s.Name
}

// reportOwn tells what foresail says of itself.
func reportOwn(b *testing.B, before, after foresail.Families) {
	b.Helper()
	for _, verb := range []string{"filter", "prioritize"} {
		const name = "foresail_extender_request_duration_seconds"
		h := histogram(after, name, "verb", verb).since(histogram(before, name, "verb", verb))
		b.ReportMetric(h.quantile(0.5)*1e9, verb+"-p50-ns")
		b.ReportMetric(h.quantile(0.99)*1e9, verb+"-p99-ns")
	}
	b.ReportMetric(after.Sum("foresail_extender_connections_total")-1, "reconnects")
	b.ReportMetric(after.Sum("foresail_extender_fail_open_total")-before.Sum("foresail_extender_fail_open_total"),
		"failed-open")
	b.ReportMetric(after.Sum("foresail_extender_cache_age_seconds"), "s-view-age")
}

// compare has two schedulers take bursts in turn, reports how quick they were, and returns how many
// pods the second has bound.
func compare(b *testing.B, cluster *controlplane.Cluster, c crowd, plain, extended string) int {
	b.Helper()
	s := newStage(b, cluster, c)
	for _, name := range []string{plain, extended} { // fills caches, which is not measured
		s.burst(b, name, -1)
	}
	speeds := map[string][]float64{}
	bound := 0
	b.ResetTimer()
	for range b.N {
		for round := range *rounds {
			order := []string{plain, extended}
			if round%2 == 1 {
				slices.Reverse(order)
			}
			for _, name := range order {
				speed := s.burst(b, name, round)
				speeds[name] = append(speeds[name], speed)
				b.Logf("round %d: %s: %.0f pods/s", round, name, speed)
			}
			bound += *burst
		}
	}
	b.StopTimer()
	without, with := median(speeds[plain]), median(speeds[extended])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(without, "pods/s-without")
	b.ReportMetric(with, "pods/s-with")
	b.ReportMetric(100*with/without, "%-of-without")
	return bound + *burst
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[len(values)/2] + values[(len(values)-1)/2]) / 2
}

// stage is where bursts come and go.
type stage struct {
	crowd  crowd
	etcd   *etcdseed.Writer
	client kubernetes.Interface
}

// burstNamespace is that of the pods of bursts.
const burstNamespace = "burst"

func newStage(b *testing.B, cluster *controlplane.Cluster, c crowd) *stage {
	b.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: burstNamespace}}
	_, err := cluster.Client().CoreV1().Namespaces().Create(b.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		_, err = cluster.Client().CoreV1().Namespaces().Get(b.Context(), burstNamespace, metav1.GetOptions{})
	}
	require.NoError(b, err)
	v, err := etcdseed.Open(cluster.EtcdURL())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, v.Close()) })
	config := cluster.RESTConfig()
	config.ContentType = "application/vnd.kubernetes.protobuf" // the least work for what is measured beside it
	client, err := kubernetes.NewForConfig(config)
	require.NoError(b, err)
	return &stage{crowd: c, etcd: v, client: client}
}

// burst has pods appear at once that name a scheduler, and returns how many of them were bound a
// second. When it returns they have gone.
func (s *stage) burst(b *testing.B, scheduler string, round int) (speed float64) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	list, err := s.client.CoreV1().Pods(burstNamespace).List(ctx, metav1.ListOptions{Limit: 1})
	require.NoError(b, err)
	require.Empty(b, list.Items)
	watcher, err := s.client.CoreV1().Pods(burstNamespace).Watch(ctx,
		metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(b, err)
	defer watcher.Stop()
	bound := map[string]bool{}
	allBound := following(ctx, watcher, func(_ watch.Event, p *corev1.Pod) bool {
		if p.Spec.NodeName != "" {
			bound[p.Name] = true
		}
		return len(bound) == *burst
	})
	begun := time.Now()
	name := func(i int) string { return fmt.Sprintf("%s-%d-%04d", scheduler, round, i) }
	s.change(b, func(i int) error {
		p := s.crowd.newPod(name(i))
		p.Namespace, p.Spec.SchedulerName, p.CreationTimestamp = burstNamespace, scheduler, metav1.Now()
		return s.etcd.Put(ctx, "pods", p)
	})
	require.NoError(b, <-allBound, "%d of %d pods bound", len(bound), *burst)
	speed = float64(*burst) / time.Since(begun).Seconds()
	gone := 0
	allGone := following(ctx, watcher, func(e watch.Event, _ *corev1.Pod) bool {
		if e.Type == watch.Deleted {
			gone++
		}
		return gone == *burst
	})
	s.change(b, func(i int) error { return s.etcd.Delete(ctx, "pods", burstNamespace, name(i)) })
	require.NoError(b, <-allGone)
	time.Sleep(2 * time.Second) // for the others to see it, and to collect garbage
	return speed
}

// change changes each pod of a burst by a transaction of its own. What changes together has one
// resourceVersion, which happens nowhere else: a watch that ends amid such changes loses the rest
// of them.
func (s *stage) change(b *testing.B, change func(i int) error) {
	b.Helper()
	for i := range *burst {
		require.NoError(b, change(i))
		require.NoError(b, s.etcd.Flush(b.Context()))
	}
}

// following follows while others bring events about: the API server ends a watch that is not read.
func following(ctx context.Context, w watch.Interface, last func(watch.Event, *corev1.Pod) bool) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- follow(ctx, w, last) }()
	return ended
}

// follow reads events of pods until one is the last.
func follow(ctx context.Context, w watch.Interface, last func(watch.Event, *corev1.Pod) bool) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, ok := <-w.ResultChan():
			if !ok {
				return errors.New("the watch of pods has ended")
			}
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				return fmt.Errorf("the watch of pods told of %T: %v", e.Object, e.Object)
			}
			if last(e, p) {
				return nil
			}
		}
	}
}

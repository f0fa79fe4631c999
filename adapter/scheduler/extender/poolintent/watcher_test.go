package poolintent

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/api/v1alpha1"
)

// cluster is what knows WorkerPools, once err is nil.
type cluster struct {
	informer *controllertest.FakeInformer

	mu    sync.Mutex
	err   error
	asked int
}

func (c *cluster) GetInformer(context.Context, client.Object,
	...ctrlcache.InformerGetOption) (ctrlcache.Informer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.informer, c.err
}

// answers has the next question be answered so, and returns how many there have been.
func (c *cluster) answers(err error) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	return c.asked
}

var noMatch = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "foresail.dev", Kind: "WorkerPool"}}

// working is a pool with room for more that has said something now.
func working(name string, changes ...func(*v1alpha1.WorkerPool)) *v1alpha1.WorkerPool {
	p := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec = v1alpha1.WorkerPoolSpec{Min: 1, Max: 5,
		Provider: v1alpha1.PoolProvider{Simulated: &v1alpha1.SimulatedProvider{Zones: []string{"a"}}}}
	p.Status.Workers = new(int32(3))
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionTrue}}
	p.Status.Decisions = []v1alpha1.PoolDecision{{Time: metav1.Now(), Count: 1, Step: "Hold", Reason: "NothingToDo"}}
	p.Status.RemovalCandidates = []string{name + "-idle"}
	for _, c := range changes {
		c(p)
	}
	return p
}

// says has the pool have made its newest decision once more, now.
func says(p *v1alpha1.WorkerPool) {
	d := &p.Status.Decisions[0]
	d.Count++
	d.Last = new(metav1.Now())
}

// watched runs a watcher in a bubble.
func watched(t *testing.T, test func(*testing.T, *cluster, *Watcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{informer: controllertest.NewFakeInformer(controllertest.Synced)}
		w := New(c, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		test(t, c, w)
		cancel()
		require.NoError(t, <-ended)
	})
}

func growing(s *extender.PoolIntent) []string {
	out := []string{}
	for _, g := range s.Growing {
		out = append(out, g.Pool)
	}
	return out
}

func TestPoolsThatCanGrow(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*v1alpha1.WorkerPool)
		grows  bool
	}{
		"one with room": {func(*v1alpha1.WorkerPool) {}, true},
		"one in a cooldown, which will be over": {func(p *v1alpha1.WorkerPool) {
			p.Status.Decisions[0].Reason = "CoolingDown"
		}, true},
		"one without forecasts, for pending pods": {func(p *v1alpha1.WorkerPool) {
			p.Status.Decisions[0].Reason = "MetricsUnknown"
		}, true},
		"one at its maximum": {func(p *v1alpha1.WorkerPool) { p.Status.Workers = new(int32(5)) }, false},
		"one at its maximum, part of it on its way": {func(p *v1alpha1.WorkerPool) {
			p.Status.Workers, p.Status.Action = new(int32(5)), &v1alpha1.PoolAction{ID: "1", Kind: "ScaleUp"}
		}, true},
		"one above it that removes": {func(p *v1alpha1.WorkerPool) {
			p.Status.Workers, p.Status.Action = new(int32(6)), &v1alpha1.PoolAction{ID: "1", Kind: "ScaleDown"}
		}, false},
		"one whose workers are not known": {func(p *v1alpha1.WorkerPool) { p.Status.Workers = nil }, false},
		"one for show":                    {func(p *v1alpha1.WorkerPool) { p.Spec.DryRun = true }, false},
		"one that is being deleted": {func(p *v1alpha1.WorkerPool) { p.DeletionTimestamp = new(metav1.Now()) },
			false},
		"one that is not healthy": {func(p *v1alpha1.WorkerPool) {
			p.Status.Conditions[0].Status = metav1.ConditionFalse
		}, false},
		"one of which that is not known":   {func(p *v1alpha1.WorkerPool) { p.Status.Conditions = nil }, false},
		"one that has decided nothing yet": {func(p *v1alpha1.WorkerPool) { p.Status.Decisions = nil }, false},
		"one with nothing left to launch": {func(p *v1alpha1.WorkerPool) {
			p.Status.Decisions[0].Reason = "InsufficientCapacity"
		}, false},
		"one whose launches fail": {func(p *v1alpha1.WorkerPool) { p.Status.Decisions[0].Reason = "BackingOff" },
			false},
		"one that needs a signal as well": {func(p *v1alpha1.WorkerPool) {
			p.Status.Decisions[0].Reason = "SignalsDisagree"
		}, false},
		"one whose journal cannot be read": {func(p *v1alpha1.WorkerPool) { p.Status.Decisions[0].Reason = "JournalUnknown" },
			false},
		"one that was heard of long ago": {func(p *v1alpha1.WorkerPool) {
			p.Status.Decisions[0].Time.Time = time.Now().Add(-121 * time.Second)
		}, false},
		"one whose clock is ahead": {func(p *v1alpha1.WorkerPool) {
			p.Status.Decisions[0].Time.Time = time.Now().Add(time.Hour)
		}, true},
		"one that looks every five minutes": {func(p *v1alpha1.WorkerPool) {
			p.Status.Decisions[0].Time.Time = time.Now().Add(-5 * time.Minute)
			p.Spec.Interval = &metav1.Duration{Duration: 5 * time.Minute}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			watched(t, func(t *testing.T, c *cluster, w *Watcher) {
				c.informer.Add(working("workers", row.change))
				assert.Equal(t, row.grows, len(w.PoolIntent().Growing) > 0)
			})
		})
	}
}

func TestLabelsOfNewNodes(t *testing.T) {
	watched(t, func(t *testing.T, c *cluster, w *Watcher) {
		c.informer.Add(working("workers", func(p *v1alpha1.WorkerPool) {
			p.Spec.Provider.Simulated.Zones = []string{"b", "a"}
			p.Spec.Template.Labels = map[string]string{"team": "x"}
			p.Spec.Template.Taints = []v1alpha1.NodeTaint{{Key: "dedicated", Value: "x", Effect: "NoSchedule"}}
		}))
		c.informer.Add(working("zz", func(p *v1alpha1.WorkerPool) {
			p.Spec.Provider = v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{
				Region: "eu-central-1", InstanceTypes: []string{"t3.large", "m5.large"},
				Subnets: []v1alpha1.EC2Subnet{{Zone: "eu-central-1a", ID: "1"}, {Zone: "eu-central-1a", ID: "2"}},
			}}
		}))
		c.informer.Add(working("zzz", func(p *v1alpha1.WorkerPool) {
			p.Spec.Provider = v1alpha1.PoolProvider{EC2: &v1alpha1.EC2Provider{
				Region: "eu-central-1", Requirements: &v1alpha1.EC2Requirements{Architecture: "arm64"},
				Subnets: []v1alpha1.EC2Subnet{{Zone: "eu-central-1b", ID: "3"}},
			}}
		}))
		of := func(zone, kind string, more map[string]string) map[string]string {
			out := map[string]string{corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: zone,
				corev1.LabelInstanceTypeStable: kind}
			maps.Copy(out, more)
			return out
		}
		taints := []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		simulated := map[string]string{corev1.LabelArchStable: "amd64", "team": "x"}
		region := map[string]string{corev1.LabelTopologyRegion: "eu-central-1"}
		assert.Equal(t, []extender.Growth{
			{Pool: "workers", Labels: of("a", "simulated", simulated), Taints: taints},
			{Pool: "workers", Labels: of("b", "simulated", simulated), Taints: taints},
			{Pool: "zz", Labels: of("eu-central-1a", "t3.large", region)},
			{Pool: "zz", Labels: of("eu-central-1a", "m5.large", region)},
			{Pool: "zzz", Labels: map[string]string{ // its types are known to EC2 alone
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "arm64",
				corev1.LabelTopologyZone: "eu-central-1b", corev1.LabelTopologyRegion: "eu-central-1",
			}},
		}, w.PoolIntent().Growing)
	})
}

func TestRemovingAndCandidates(t *testing.T) {
	watched(t, func(t *testing.T, c *cluster, w *Watcher) {
		assert.Equal(t, &extender.PoolIntent{}, w.PoolIntent(), "nothing is known of pools that there are not")
		pool := working("workers", func(p *v1alpha1.WorkerPool) {
			p.Status.Action = &v1alpha1.PoolAction{ID: "1", Kind: "ScaleDown", Nodes: []string{"n1", "n2"}}
			p.Status.Terminating = []string{"n3"}
			p.Status.RemovalCandidates = []string{"n4", "n3", "n5"}
		})
		c.informer.Add(pool)
		first := w.PoolIntent()
		assert.Equal(t, map[string]string{"n1": "workers", "n2": "workers", "n3": "workers"}, first.Removing)
		assert.Equal(t, map[string]string{"n4": "workers", "n5": "workers"}, first.Candidates)

		done := pool.DeepCopy()
		done.Status.Action, done.Status.Terminating, done.Status.RemovalCandidates = nil, nil, []string{"n5"}
		says(done)
		c.informer.Update(pool, done)
		assert.Empty(t, w.PoolIntent().Removing)
		assert.Equal(t, map[string]string{"n5": "workers"}, w.PoolIntent().Candidates)
		assert.Len(t, first.Removing, 3, "what was told before is not changed")

		c.informer.Delete(done)
		assert.Empty(t, w.PoolIntent().Candidates)
		assert.Empty(t, growing(w.PoolIntent()))
	})
}

func TestDryRunAndDeletedPoolsRemoveNothing(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.WorkerPool){
		"dry run": func(p *v1alpha1.WorkerPool) { p.Spec.DryRun = true },
		"deleted": func(p *v1alpha1.WorkerPool) { p.DeletionTimestamp = new(metav1.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			watched(t, func(t *testing.T, c *cluster, w *Watcher) {
				c.informer.Add(working("workers", change, func(p *v1alpha1.WorkerPool) {
					p.Status.Action = &v1alpha1.PoolAction{ID: "1", Kind: "ScaleDown", Nodes: []string{"n1"}}
				}))
				assert.Equal(t, map[string]string{"n1": "workers"}, w.PoolIntent().Removing, "the taint is still there")
				assert.Empty(t, w.PoolIntent().Candidates)
				assert.Empty(t, w.PoolIntent().Growing)
			})
		})
	}
}

// A pool is at work as long as its newest decision changes, whatever its times say.
func TestSilentPool(t *testing.T) {
	watched(t, func(t *testing.T, c *cluster, w *Watcher) {
		slow := working("slow", func(p *v1alpha1.WorkerPool) { p.Status.Terminating = []string{"n1"} })
		wrong := working("wrong",
			func(p *v1alpha1.WorkerPool) { p.Status.Decisions[0].Time.Time = time.Now().Add(-time.Hour) })
		c.informer.Add(slow)
		c.informer.Add(wrong)
		assert.Equal(t, []string{"slow"}, growing(w.PoolIntent()))
		for range 4 { // a clock that is an hour behind goes on
			time.Sleep(30 * time.Second)
			next := wrong.DeepCopy()
			next.Status.Decisions[0].Count++
			c.informer.Update(wrong, next)
			wrong = next
		}
		assert.Equal(t, []string{"slow", "wrong"}, growing(w.PoolIntent()))

		time.Sleep(reviewEvery)
		synctest.Wait()
		assert.Equal(t, []string{"wrong"}, growing(w.PoolIntent()), "nothing was written of the other for two minutes")
		assert.Equal(t, map[string]string{"wrong-idle": "wrong"}, w.PoolIntent().Candidates)
		assert.Equal(t, map[string]string{"n1": "slow"}, w.PoolIntent().Removing,
			"what is committed counts a minute longer")
		time.Sleep(keptFor)
		synctest.Wait()
		assert.Empty(t, w.PoolIntent().Removing)
		assert.Equal(t, []string{"wrong"}, growing(w.PoolIntent()))

		again := slow.DeepCopy()
		again.Status.PendingPods = new(int32(1)) // by no tick
		c.informer.Update(slow, again)
		assert.Equal(t, []string{"wrong"}, growing(w.PoolIntent()))
		back := again.DeepCopy()
		says(back)
		c.informer.Update(again, back)
		assert.Equal(t, []string{"slow", "wrong"}, growing(w.PoolIntent()))
		assert.Equal(t, map[string]string{"n1": "slow"}, w.PoolIntent().Removing)
	})
}

func TestClusterWithoutWorkerPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("the server does not answer")
		c := &cluster{informer: controllertest.NewFakeInformer(), err: down}
		w := New(c, time.Now)
		require.ErrorIs(t, w.Ready(), ErrUnsynced)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		require.ErrorIs(t, w.Ready(), down)

		asked := c.answers(noMatch)
		time.Sleep(retryAfter)
		synctest.Wait()
		require.NoError(t, w.Ready(), "there are none")
		assert.Equal(t, &extender.PoolIntent{}, w.PoolIntent())
		time.Sleep(lookAgain - time.Second)
		synctest.Wait()
		assert.Equal(t, asked+1, c.answers(nil))

		time.Sleep(time.Second)
		synctest.Wait()
		require.ErrorIs(t, w.Ready(), ErrUnsynced)
		c.informer.Synced()
		synctest.Wait()
		require.NoError(t, w.Ready())
		c.informer.Add(working("workers"))
		assert.Equal(t, []string{"workers"}, growing(w.PoolIntent()))
		cancel()
		require.NoError(t, <-ended)
	})
}

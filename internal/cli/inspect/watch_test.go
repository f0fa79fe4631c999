package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
)

// viewer is a watcher in virtual time, of an API server that plays what a test wants.
type viewer struct {
	*testing.T
	out, notes captured
	objects    client.Client
	end        func() error // Ctrl-C

	mu    sync.Mutex
	fault func(context.Context) error // of reads; nil: none
}

// fail has reads fail from now on; nil: they succeed.
func (p *viewer) fail(how func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = how
}

func (p *viewer) faultOf(ctx context.Context) error {
	p.mu.Lock()
	how := p.fault
	p.mu.Unlock()
	if how == nil {
		return nil
	}
	return how(ctx)
}

// captured is what was written since it was last taken.
type captured struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *captured) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

func (p *captured) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.text.Reset()
	return p.text.String()
}

// startWatch begins to watch an object with w, whose writers are set here.
func startWatch(t *testing.T, w *watcher, read func(client.Client) explainFunc, objects ...client.Object) *viewer {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	p := &viewer{T: t}
	p.objects = controllerfake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
			o client.Object, opts ...client.GetOption) error {
			if err := p.faultOf(ctx); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		}}).Build()
	w.out, w.notes, w.now = &p.out, &p.notes, time.Now
	if w.screen != nil {
		w.screen.out = &p.out
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		defer w.close()
		ended <- w.run(ctx, read(p.objects))
	}()
	synctest.Wait()
	p.end = func() error {
		cancel()
		err := <-ended
		synctest.Wait()
		return err
	}
	return p
}

// pass returns what was printed, and what was noted, within a number of periods.
func (p *viewer) pass(periods int) (out, notes string) {
	time.Sleep(time.Duration(periods) * watchPeriod)
	synctest.Wait()
	return p.out.take(), p.notes.take()
}

var watchedKey = client.ObjectKey{Namespace: "shop", Name: "checkout"}

func watchedMetric() *v1alpha1.PredictedMetric {
	return &v1alpha1.PredictedMetric{ObjectMeta: metav1.ObjectMeta{Namespace: watchedKey.Namespace,
		Name: watchedKey.Name}}
}

func readMetric(objects client.Client) explainFunc {
	return func(ctx context.Context) (explanation, error) {
		return explainMetric(ctx, objects, watchedKey, time.Now)
	}
}

// decide writes a status.
func (p *viewer) decide(desired int32) {
	p.Helper()
	pm := watchedMetric()
	require.NoError(p, p.objects.Get(p.Context(), watchedKey, pm))
	pm.Status.DesiredReplicas, pm.Status.UpdateTime = &desired, new(metav1.Now())
	require.NoError(p, p.objects.Status().Update(p.Context(), pm))
}

func TestWatchPrintsEachNewState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startWatch(t, &watcher{}, readMetric, watchedMetric())
		out, notes := p.pass(3)
		assert.Equal(t, 1, strings.Count(out, "PredictedMetric shop/checkout"), out)
		assert.True(t, strings.HasPrefix(out, "PredictedMetric"), "no empty line comes first")
		assert.Empty(t, notes)

		p.decide(6)
		out, _ = p.pass(1)
		assert.True(t, strings.HasPrefix(out, "\nPredictedMetric shop/checkout"), out)
		assert.Contains(t, out, "6 needed")
		out, _ = p.pass(10)
		assert.Empty(t, out, "nothing has changed but ages")
		require.NoError(t, p.end())
	})
}

func TestWatchPrintsADocumentALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startWatch(t, &watcher{json: true}, readMetric, watchedMetric())
		out, _ := p.pass(2)
		assert.Regexp(t, `^\{"namespace":"shop","name":"checkout","spec":\{.*\},"status":\{\}\}\n$`, out)
		p.decide(6)
		p.pass(1)
		p.decide(7)
		out, notes := p.pass(1)
		assert.Regexp(t, `^\{.*"desiredReplicas":7.*\}\n$`, out)
		assert.Empty(t, notes)
		require.NoError(t, p.end())
	})
}

func TestWatchSurvivesAnAPIServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startWatch(t, &watcher{json: true}, readMetric, watchedMetric())
		p.pass(1)
		p.fail(func(context.Context) error { return errors.New("connection refused") })
		out, notes := p.pass(5)
		assert.Empty(t, out)
		assert.Regexp(t, `^\d\d:\d\d:\d\d it cannot be read: read PredictedMetric checkout in namespace shop: connection refused; trying again each 2s\n$`, notes, "once")
		p.fail(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }) // no packet comes back
		_, notes = p.pass(20)
		assert.Equal(t, 1, strings.Count(notes, "\n"), notes)
		assert.Contains(t, notes, "no answer within 10s")

		p.fail(nil)
		p.decide(8)
		out, notes = p.pass(6)
		assert.Contains(t, out, `"desiredReplicas":8`)
		assert.Regexp(t, `^\d\d:\d\d:\d\d it can be read again\n$`, notes)
		require.NoError(t, p.end())
	})
}

func TestWatchWaitsForWhatIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startWatch(t, &watcher{}, readMetric, watchedMetric())
		p.pass(1)
		require.NoError(t, p.objects.Delete(t.Context(), watchedMetric()))
		out, notes := p.pass(3)
		assert.Empty(t, out)
		assert.Contains(t, notes, `it cannot be read: there is no PredictedMetric "checkout" in namespace shop, nor any other in it; trying again`)
		pm := watchedMetric()
		pm.UID = "another"
		require.NoError(t, p.objects.Create(t.Context(), pm))
		out, notes = p.pass(1)
		assert.Contains(t, out, "\nPredictedMetric shop/checkout")
		assert.Contains(t, notes, "it can be read again")
		require.NoError(t, p.end())
	})
}

// An error about a name is of all that its reader may list.
func TestANameThatDoesNotExistNamesOtherNamespaces(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	objects := controllerfake.NewClientBuilder().WithScheme(scheme)
	for _, name := range []string{"predicted", "reactive"} {
		pm := watchedMetric()
		pm.Namespace, pm.Name = "demo", name
		objects.WithObjects(pm)
	}
	_, err := cli.MetricNamed(t.Context(), objects.Build(), client.ObjectKey{Namespace: "default", Name: "checkout"})
	assert.EqualError(t, err, `there is no PredictedMetric "checkout" in namespace default, nor any other in it; namespace demo has predicted, reactive`)
}

func TestWatchOfNothingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := watchedMetric()
		none.Name = "cart"
		w := &watcher{out: io.Discard, notes: io.Discard, now: time.Now}
		scheme := runtime.NewScheme()
		require.NoError(t, v1alpha1.AddToScheme(scheme))
		objects := controllerfake.NewClientBuilder().WithScheme(scheme).WithObjects(none).Build()
		assert.ErrorContains(t, w.run(t.Context(), readMetric(objects)),
			`there is no PredictedMetric "checkout" in namespace shop: must be one of cart`)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.NoError(t, w.run(ctx, func(ctx context.Context) (explanation,
			error) {
			return explanation{}, ctx.Err()
		}), "Ctrl-C at the first read")
	})
}

// A pool is another state if its nodes are, and not if only the time at which it was read is.
func TestWatchOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fake.NewClientset()
		pool := &v1alpha1.WorkerPool{ObjectMeta: metav1.ObjectMeta{Name: "workers"},
			Spec: v1alpha1.WorkerPoolSpec{Max: 3}}
		p := startWatch(t, &watcher{json: true}, func(objects client.Client) explainFunc {
			return func(ctx context.Context) (explanation, error) {
				return explainPool(ctx, objects, nodes, "workers", 0, time.Now)
			}
		}, pool)
		out, _ := p.pass(3)
		assert.Equal(t, 1, strings.Count(out, `"name":"workers"`))
		require.NoError(t, p.objects.Get(t.Context(), client.ObjectKey{Name: "workers"}, pool))
		pool.Spec.Max = 4
		require.NoError(t, p.objects.Update(t.Context(), pool))
		out, _ = p.pass(1)
		assert.Contains(t, out, `"max":4`)
		require.NoError(t, p.end())
	})
}

func TestWatchRedrawsATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const columns, rows = 20, 4
		var small atomic.Bool
		w := &watcher{screen: &screen{size: func() (int, int, error) {
			if small.Load() {
				return columns, rows, nil
			}
			return 200, 60, nil
		}}}
		p := startWatch(t, w, readMetric, watchedMetric())
		out, _ := p.pass(0)
		assert.True(t, strings.HasPrefix(out, enterScreen+cursorHome), "%q", out)
		assert.Contains(t, out, "read each 2s; Ctrl-C ends"+clearLine+"\r\n")
		assert.Contains(t, out, "PredictedMetric shop/checkout")
		assert.True(t, strings.HasSuffix(out, clearBelow), "%q", out)

		p.decide(6)
		out, _ = p.pass(1)
		assert.Equal(t, 1, strings.Count(out, cursorHome))
		assert.NotContains(t, out, enterScreen)
		assert.Contains(t, out, "6 needed")
		out, _ = p.pass(2)
		assert.Equal(t, 2, strings.Count(out, cursorHome), "ages go on")

		p.fail(func(context.Context) error { return errors.New("connection refused") })
		out, notes := p.pass(1)
		assert.Contains(t, out, "not read since ")
		assert.Contains(t, out, "connection refused; trying again each 2s")
		assert.Contains(t, out, "6 needed", "the last state stays")
		assert.Empty(t, notes, "the screen has it")

		p.fail(nil)
		small.Store(true)
		out, _ = p.pass(1)
		drawn := strings.Split(strings.TrimSuffix(strings.TrimPrefix(out, cursorHome), clearBelow), "\r\n")
		assert.Len(t, drawn, rows)
		for _, line := range drawn {
			assert.Less(t, len([]rune(strings.TrimSuffix(line, clearLine))), columns, line)
		}
		assert.NotContains(t, out, "not read since")

		require.NoError(t, p.end())
		out, _ = p.pass(0)
		assert.True(t, strings.HasPrefix(out, leaveScreen+"PredictedMetric shop/checkout"), "%q", out)
	})
}

func TestScreenFits(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"a\nb\nc\n", []string{"0123456789abcd", "ef", "", "a", "b", "c"}},
		{"a\nb\nc\nd", []string{"0123456789abcd", "ef", "", "a", "b", "… 2 more line…"}},
		{"0123456789abcde\n\x1b[2Jx\ty", []string{"0123456789abcd", "ef", "", "0123456789abc…", " [2Jx y"}},
	} {
		var b strings.Builder
		s := &screen{out: &b, size: func() (int, int, error) { return 15, 6, nil }}
		require.NoError(t, s.draw("0123456789abcdef", c.text))
		want := enterScreen + cursorHome + strings.Join(c.want, clearLine+"\r\n") + clearLine + clearBelow
		assert.Equal(t, want, b.String(), fmt.Sprintf("%q", c.text))
		assert.True(t, s.leave())
	}
	unknown := &screen{out: io.Discard, size: func() (int, int, error) { return 0, 0, errors.New("no terminal") }}
	assert.False(t, unknown.leave())
	require.NoError(t, unknown.draw("a", "b"))
}

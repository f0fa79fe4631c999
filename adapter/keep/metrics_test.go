package keep

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/foresail/foresail/api/v1alpha1"
)

// listing lists by a list, not by a watch.
type listing struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported is called by client-go.
func (listing) IsWatchListSemanticsUnSupported() bool { return true }

func TestCachedFollowsAnInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(namespace, name, version string) *v1alpha1.PredictedMetric {
			pm := &v1alpha1.PredictedMetric{}
			pm.Namespace, pm.Name = namespace, name
			pm.ResourceVersion = version
			return pm
		}
		changes := watch.NewFake()
		informer := toolscache.NewSharedIndexInformer(listing{&toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &v1alpha1.PredictedMetricList{Items: []v1alpha1.PredictedMetric{*of("shop", "b", "1"),
					*of("bank", "z", "2")}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface,
				error) {
				return changes, nil
			},
		}}, &v1alpha1.PredictedMetric{}, 0, toolscache.Indexers{})
		metrics, synced, err := Cached(informer)
		require.NoError(t, err)
		_, err = metrics()
		require.ErrorIs(t, err, errNotListed)
		assert.False(t, synced())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go informer.RunWithContext(ctx)
		names := func() (out []string) {
			synctest.Wait()
			all, err := metrics()
			require.NoError(t, err)
			for _, pm := range all {
				out = append(out, pm.Namespace+"/"+pm.Name+" "+pm.ResourceVersion)
			}
			return out
		}
		require.True(t, toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
		assert.Equal(t, []string{"bank/z 2", "shop/b 1"}, names())
		assert.True(t, synced())
		changes.Add(of("shop", "a", "3"))
		assert.Equal(t, []string{"bank/z 2", "shop/a 3", "shop/b 1"}, names())
		changes.Modify(of("shop", "b", "4"))
		assert.Equal(t, []string{"bank/z 2", "shop/a 3", "shop/b 4"}, names())
		changes.Delete(of("bank", "z", "5"))
		assert.Equal(t, []string{"shop/a 3", "shop/b 4"}, names())
		held, err := metrics()
		require.NoError(t, err)
		stored, exists, err := informer.GetStore().GetByKey("shop/b")
		require.NoError(t, err)
		require.True(t, exists)
		assert.Same(t, stored, held[1], "it is no copy")
		cancel()
		synctest.Wait()
	})
}

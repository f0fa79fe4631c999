package apiservice

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var customRole = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "foresail-custom-metrics", UID: "role-custom"}}

// both is a replica that registers custom metrics beside external ones.
func both(o *Options) { o.APIs = append([]API{external}, CustomMetrics(customRole.Name)...) }

// all returns the APIServices that exist, by name.
func (f *fixture) all() map[string]*apiregistrationv1.APIService {
	f.Helper()
	var list apiregistrationv1.APIServiceList
	require.NoError(f, f.client.List(f.ctx, &list))
	found := map[string]*apiregistrationv1.APIService{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found
}

const (
	beta1 = "v1beta1.custom.metrics.k8s.io"
	beta2 = "v1beta2.custom.metrics.k8s.io"
)

// prometheusAdapters is what another server has of custom metrics.
func prometheusAdapters(version string) *apiregistrationv1.APIService {
	return anothers(func(s *apiregistrationv1.APIService) {
		s.Name, s.Spec.Group, s.Spec.Version = version+"."+customGroup, customGroup, version
		s.Spec.Service.Namespace, s.Spec.Service.Name = "monitoring", "prometheus-adapter"
	})
}

func TestBothGroupsAreRegisteredWithOneCertificate(t *testing.T) {
	play(t, []client.Object{customRole}, func(f *fixture) {
		r := f.start(both)
		require.NoError(f, r.Ready())
		all := f.all()
		require.Len(f, all, 3)
		for name, s := range all {
			assert.NoError(f, verify(r, s.Spec.CABundle), name)
			assert.Equal(f, service.Name, s.Spec.Service.Name, name)
			assert.Equal(f, s.Spec.Version+"."+s.Spec.Group, name)
			require.Len(f, s.OwnerReferences, 1)
		}
		assert.Greater(f, all[beta2].Spec.VersionPriority, all[beta1].Spec.VersionPriority, "clients prefer it")
		assert.Equal(f, all[beta1].Spec.GroupPriorityMinimum, all[beta2].Spec.GroupPriorityMinimum)
		assert.Equal(f, role.Name, all[external.Name()].OwnerReferences[0].Name)
		assert.Equal(f, customRole.Name, all[beta1].OwnerReferences[0].Name, "they go with the component")
		assert.ElementsMatch(f, []string{
			"Normal Registered v1beta1.external.metrics.k8s.io leads to foresail-system/foresail",
			"Normal Registered v1beta1.custom.metrics.k8s.io leads to foresail-system/foresail",
			"Normal Registered v1beta2.custom.metrics.k8s.io leads to foresail-system/foresail",
		}, r.happened())

		for range 100 { // past a renewal
			f.after(time.Minute)
			for name, s := range f.all() {
				require.NoError(f, verify(r, s.Spec.CABundle), name)
			}
		}
		assert.Zero(f, testutil.ToFloat64(r.metrics.failures))
	})
}

func TestExternalMetricsOfAnotherDoNotKeepCustomOnesBack(t *testing.T) {
	play(t, []client.Object{customRole, anothers(nil)}, func(f *fixture) {
		r := f.start(both)
		require.NoError(f, r.Ready())
		all := f.all()
		assert.Equal(f, "keda", all[external.Name()].Spec.Service.Namespace)
		require.Contains(f, all, beta2)
		assert.NoError(f, verify(r, all[beta2].Spec.CABundle))
		assert.Equal(f, map[string]float64{"keda/keda-operator-metrics-apiserver": 0}, r.gauge(f))
		for _, name := range []string{beta1, beta2} {
			assert.InDelta(f, 1, testutil.ToFloat64(r.metrics.registered.WithLabelValues(name,
				"foresail-system/foresail")), 0)
		}
	})
}

// HPAs read all custom metrics by the preferred version of the group: one more would take the other
// server's metrics away.
func TestCustomMetricsAreNotRegisteredBesideAnothers(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1beta2"} {
		t.Run(version, func(t *testing.T) {
			play(t, []client.Object{customRole, prometheusAdapters(version)}, func(f *fixture) {
				r := f.start(func(o *Options) {
					both(o)
					o.APIs[0] = taking
				})
				f.after(time.Hour)
				all := f.all()
				require.Len(f, all, 2)
				theirs := all[version+"."+customGroup]
				require.NotNil(f, theirs)
				assert.Equal(f, "prometheus-adapter", theirs.Spec.Service.Name)
				assert.Equal(f, service.Name, all[external.Name()].Spec.Service.Name)
				var warnings []string
				for _, e := range r.happened() {
					if e != "Normal Registered v1beta1.external.metrics.k8s.io leads to foresail-system/foresail" {
						warnings = append(warnings, e)
					}
				}
				assert.Equal(f, []string{"Warning HeldByAnother " + theirs.Name + " leads to monitoring/prometheus-adapter: " +
					"HPAs do not read foresail-system/foresail, which registers itself once this APIService is gone"}, warnings)

				require.NoError(f, f.client.Delete(f.ctx, theirs))
				f.after(2 * resync)
				assert.Len(f, f.all(), 3)
				for _, name := range []string{beta1, beta2} {
					assert.InDelta(f, 1, testutil.ToFloat64(r.metrics.registered.WithLabelValues(name,
						"foresail-system/foresail")), 0)
				}
			})
		})
	}
}

func TestCustomMetricsThatAreLostAreReported(t *testing.T) {
	play(t, []client.Object{customRole}, func(f *fixture) {
		r := f.start(both)
		r.happened()
		taken := f.all()[beta1]
		taken.Spec.Service = prometheusAdapters("v1beta1").Spec.Service
		require.NoError(f, f.client.Update(f.ctx, taken))
		f.after(pause)
		happened := r.happened()
		require.Len(f, happened, 1)
		assert.Contains(f, happened[0],
			"Warning HeldByAnother v1beta1.custom.metrics.k8s.io leads to monitoring/prometheus-adapter:")
		assert.Contains(f, happened[0],
			"HPAs do not read its metrics, as v1beta2.custom.metrics.k8s.io leads to foresail-system/foresail")
		assert.Zero(f, testutil.ToFloat64(r.metrics.registered.WithLabelValues(beta1, "monitoring/prometheus-adapter")))
		assert.Equal(f, map[string]float64{"foresail-system/foresail": 1}, r.gauge(f))
		f.after(time.Hour)
		assert.Equal(f, "monitoring", f.all()[beta1].Spec.Service.Namespace, "it is not taken back")
	})
}

// One API that cannot be registered keeps no other back, and its error is said.
func TestRightsToCustomMetricsThatAreMissing(t *testing.T) {
	play(t, nil, func(f *fixture) { // without the ClusterRole of the component
		r := f.start(both)
		assert.ErrorContains(f, r.Ready(),
			"the ClusterRole foresail-custom-metrics that is to own the APIService does not exist")
		assert.Len(f, f.all(), 1)
		require.NoError(f, f.client.Create(f.ctx, customRole.DeepCopy()))
		f.after(retryAfter)
		assert.NoError(f, r.Ready())
		assert.Len(f, f.all(), 3)
	})
}

// An APIService that no one may change any more loses its reads when the authority expires. It does
// not take the others with it.
func TestAnAPIThatCannotBeChangedLeavesTheOthersVerified(t *testing.T) {
	play(t, []client.Object{customRole}, func(f *fixture) {
		r := f.start(func(o *Options) {
			both(o)
			o.Client = interceptor.NewClient(f.client, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
					opts ...client.PatchOption) error {
					if strings.HasSuffix(o.GetName(), customGroup) {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "apiservices"}, o.GetName(),
							errors.New("no RBAC policy matched"))
					}
					return c.Patch(ctx, o, p, opts...)
				},
			})
		})
		require.NoError(f, r.Ready())
		for range 3 * validity / time.Minute {
			f.after(time.Minute)
			require.NoError(f, verify(r, f.bundle()))
		}
		assert.Error(f, verify(r, f.all()[beta2].Spec.CABundle))
		assert.Positive(f, testutil.ToFloat64(r.metrics.failures))
	})
}

func TestFree(t *testing.T) {
	ours := prometheusAdapters("v1beta1")
	ours.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: service.Namespace, Name: service.Name}
	aggregated := prometheusAdapters("v1beta2")
	aggregated.Spec.Service = nil
	for name, c := range map[string]struct {
		present []client.Object
		want    *HeldError
	}{
		"no one's":       {nil, nil},
		"Foresail's own": {[]client.Object{ours}, nil},
		"another's v1beta1": {[]client.Object{prometheusAdapters("v1beta1")},
			&HeldError{beta1, "monitoring/prometheus-adapter"}},
		"another's v1beta2": {[]client.Object{prometheusAdapters("v1beta2")},
			&HeldError{beta2, "monitoring/prometheus-adapter"}},
		"taken since":               {[]client.Object{ours, prometheusAdapters("v1beta2")}, nil},
		"the API server's own":      {[]client.Object{aggregated}, &HeldError{beta2, "kube-apiserver"}},
		"another's external metric": {[]client.Object{anothers(nil)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, c.present, func(f *fixture) {
				err := Free(f.ctx, f.client, service, CustomMetrics("")...)
				if c.want == nil {
					assert.NoError(f, err)
					return
				}
				held, ok := errors.AsType[*HeldError](err)
				require.True(f, ok, "%v", err)
				assert.Equal(f, c.want, held)
			})
		})
	}
	t.Run("no one may read it", func(t *testing.T) {
		play(t, nil, func(f *fixture) {
			var on atomic.Bool
			on.Store(true)
			err := Free(f.ctx, forbidding(f, &on, &apiregistrationv1.APIService{}, "get"), service,
				CustomMetrics("")...)
			assert.True(f, apierrors.IsForbidden(err), "what is not known is not free")
			assert.ErrorContains(f, err, "read the APIService v1beta2.custom.metrics.k8s.io:")
		})
	})
}

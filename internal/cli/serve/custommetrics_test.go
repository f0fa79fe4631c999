package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/foresail/foresail/adapter/apiservice"
)

func TestCustomMetricsAreOffUnlessAsked(t *testing.T) {
	o := parsedRun(t).adapter.api.custom
	assert.False(t, o.enabled)
	assert.Empty(t, o.apis(), "nothing of theirs is registered or looked at")
	assert.Len(t, (&customMetricsOptions{enabled: true}).apis(), 2)

	file, err := os.Open("../../../manifests/components/custom-metrics/rbac.yaml")
	require.NoError(t, err)
	defer file.Close()
	var role rbacv1.ClusterRole
	require.NoError(t, utilyaml.NewYAMLOrJSONDecoder(file, 4096).Decode(&role))
	assert.Equal(t, role.Name, customMetricsOwner, "it is the ClusterRole of the manifests")
}

func TestFlagsOfCustomMetricsAreChecked(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // "" accepts
	}{
		{[]string{"--custom-metrics"}, ""},
		{[]string{"--custom-metrics", "--apiservice=none"}, ""},
		{[]string{"--enable=nodepool", "--custom-metrics"},
			`--custom-metrics: "true": must be left out unless --enable has adapter`},
		{[]string{"--enable=nodepool", "--custom-metrics=false"}, ""},
	} {
		o := parsedRun(t, append([]string{"--leader-elect=false", "--foresail-namespace=foresail-system"},
			c.args...)...)
		if c.want == "" {
			assert.NoError(t, o.validate(), c.args)
		} else {
			assert.ErrorContains(t, o.validate(), c.want, c.args)
		}
	}
}

// apiServices answers as an API server that has some APIServices, by name, each with the Service that it leads to.
func apiServices(t *testing.T, held map[string]apiservice.Service) *rest.Config {
	t.Helper()
	answer := func(w http.ResponseWriter, object any) {
		w.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(w).Encode(object))
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: "apiregistration.k8s.io/v1", Version: "v1"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) { answer(w, metav1.APIVersions{}) })
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIGroupList{Groups: []metav1.APIGroup{{
			Name: "apiregistration.k8s.io", Versions: []metav1.GroupVersionForDiscovery{version},
			PreferredVersion: version,
		}}})
	})
	mux.HandleFunc("GET /apis/apiregistration.k8s.io/v1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, metav1.APIResourceList{GroupVersion: version.GroupVersion,
			APIResources: []metav1.APIResource{{Name: "apiservices", Kind: "APIService"}}})
	})
	mux.HandleFunc("GET /apis/apiregistration.k8s.io/v1/apiservices/{name}",
		func(w http.ResponseWriter, r *http.Request) {
			service, ok := held[r.PathValue("name")]
			if !ok {
				w.WriteHeader(http.StatusNotFound)
				answer(w, apierrors.NewNotFound(schema.GroupResource{Resource: "apiservices"},
					r.PathValue("name")).Status())
				return
			}
			answer(w, apiregistrationv1.APIService{
				TypeMeta:   metav1.TypeMeta{APIVersion: version.GroupVersion, Kind: "APIService"},
				ObjectMeta: metav1.ObjectMeta{Name: r.PathValue("name")},
				Spec:       apiregistrationv1.APIServiceSpec{Service: &apiregistrationv1.ServiceReference{Namespace: service.Namespace, Name: service.Name}},
			})
		})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestStartIsRefusedBesideAnotherServer(t *testing.T) {
	own := apiservice.Service{Namespace: "foresail-system", Name: "foresail"}
	theirs := apiservice.Service{Namespace: "monitoring", Name: "prometheus-adapter"}
	const beta1, beta2 = "v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"
	on := &customMetricsOptions{enabled: true}

	assert.NoError(t, on.checkFree(t.Context(), apiServices(t, nil), own))
	assert.NoError(t, on.checkFree(t.Context(), apiServices(t, map[string]apiservice.Service{beta1: own, beta2: own}),
		own), "a restart")
	assert.NoError(t, on.checkFree(t.Context(),
		apiServices(t, map[string]apiservice.Service{"v1beta1.external.metrics.k8s.io": theirs}), own))
	for name, other := range map[string]string{beta1: beta2, beta2: beta1} {
		taken := apiServices(t, map[string]apiservice.Service{name: theirs, other: own})
		assert.NoError(t, on.checkFree(t.Context(), taken, own),
			"what has been taken later is reported, and ends nothing else")
		cluster := apiServices(t, map[string]apiservice.Service{name: theirs})
		assert.EqualError(t, on.checkFree(t.Context(), cluster, own),
			"--custom-metrics: the APIService "+name+" leads to monitoring/prometheus-adapter, "+
				"and HPAs could not read its metrics any more if Foresail registered beside it: leave the flag out and have HPAs read external metrics, or remove that APIService first")
		assert.NoError(t, (&customMetricsOptions{}).checkFree(t.Context(), cluster, own),
			"without the flag it is nobody's business")
	}
	nothing := httptest.NewServer(http.NotFoundHandler())
	defer nothing.Close()
	for name, host := range map[string]string{"nobody answers": "http://127.0.0.1:1",
		"a server without APIServices": nothing.URL} {
		assert.ErrorContains(t, on.checkFree(t.Context(), &rest.Config{Host: host}, own),
			"--custom-metrics: whether another server has custom metrics is not known: read the APIService "+beta2, name)
	}
}

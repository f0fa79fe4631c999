package externalmetrics

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	externalclient "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/adapter/serving"
	"github.com/foresail/foresail/adapter/serving/servingtest"
)

// served is a running server.
type served struct {
	cluster *cluster
	server  *Server
	memory  *servingtest.Memory
	unready atomic.Pointer[error]
	stop    func() error // ends the server and returns what Run returned
}

// fresh is a healthy snapshot by the clock of the machine, which servers use.
func fresh(name, target string) snapshot.Snapshot {
	return servingtest.Changed(servingtest.Healthy(name, target),
		func(s *snapshot.Snapshot) { s.At, s.NewestSample = time.Now(), time.Now() })
}

func serve(t testing.TB, snapshots ...snapshot.Snapshot) *served {
	t.Helper()
	return serveBeside(t, nil, snapshots...)
}

// serveBeside serves beside a second adapter.
func serveBeside(t testing.TB, second Second, snapshots ...snapshot.Snapshot) *served {
	t.Helper()
	return serveConfig(t, Config{Second: second}, servingtest.NewMemory(snapshots...))
}

// serveConfig serves the metrics of a memory, and what else a Config has.
func serveConfig(t testing.TB, c Config, memory *servingtest.Memory) *served {
	t.Helper()
	s := &served{cluster: newCluster(t), memory: memory}
	o := testOptions(t, s.cluster)
	require.NoError(t, o.Validate())
	c.Provider, c.Ready, c.Version = New(memory, time.Now), s.ready, "v1.2.3"
	server, err := o.NewServer(c)
	require.NoError(t, err)
	s.server = server

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	s.stop = func() error {
		cancel()
		select {
		case err := <-ended:
			ended <- err
			return err
		case <-time.After(time.Minute):
			return errors.New("the server has not ended within a minute")
		}
	}
	t.Cleanup(func() { require.NoError(t, s.stop()) })
	require.Eventually(t, func() bool { return s.get(t, "/livez", "").code == http.StatusOK },
		30*time.Second, 10*time.Millisecond)
	return s
}

// fixtures is the folder of the self-signed certificate that the servers of all tests share.
var fixtures string

func TestMain(m *testing.M) {
	var err error
	if fixtures, err = os.MkdirTemp("", "externalmetrics"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(fixtures); err != nil {
		panic(err)
	}
	os.Exit(code)
}

func testOptions(t testing.TB, c *cluster) *Options {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := NewOptions()
	o.Kubeconfig = c.kubeconfig(t)
	o.Generic.SecureServing.Listener = listener
	o.Generic.SecureServing.ServerCert.FixtureDirectory = fixtures
	return o
}

func (s *served) ready() error {
	if err := s.unready.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *served) url(path string) string { return "https://" + s.server.Addr().String() + path }

type answer struct {
	code   int
	header http.Header
	body   []byte
}

func (a answer) decode(t testing.TB, into any) {
	t.Helper()
	require.Equal(t, http.StatusOK, a.code, "%s", a.body)
	require.NoError(t, json.Unmarshal(a.body, into), "%s", a.body)
}

// get reads a path as the user of a token, or anonymously; header is pairs of names and values.
func (s *served) get(t testing.TB, path, token string, header ...string) answer {
	t.Helper()
	return s.do(t, &tls.Config{InsecureSkipVerify: true}, path, token, header...)
}

func (s *served) do(t testing.TB, config *tls.Config, path, token string, header ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url(path), nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{code: response.StatusCode, header: response.Header, body: body}
}

func (s *served) config(token string) *rest.Config {
	return &rest.Config{Host: s.url(""), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

const totalPath = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/predicted_load_total"

// The HPA controller's own client reads the values and the reasons why there are none.
func TestServerAnswersTheClientOfTheHPA(t *testing.T) {
	waiting := servingtest.Changed(fresh("waiting", "y"), func(s *snapshot.Snapshot) { s.NewestSample = time.Time{} })
	s := serve(t, fresh("a", "x"), waiting)
	client, err := externalclient.NewForConfig(s.config(hpaUser))
	require.NoError(t, err)
	read := func(namespace, metric, selector string) (*v1beta1.ExternalMetricValueList, error) {
		parsed, err := labels.Parse(selector)
		require.NoError(t, err)
		return client.NamespacedMetrics(namespace).List(metric, parsed)
	}

	for metric, want := range map[string]string{serving.LoadTotal: "10010m",
		serving.Load: "1001m", serving.Replicas: "14"} {
		list, err := read("shop", metric, "predictedmetric in (a,b),kind=Deployment")
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		item := list.Items[0]
		assert.Equal(t, want, item.Value.String())
		assert.Equal(t, metric, item.MetricName)
		assert.Equal(t, map[string]string{"predictedmetric": "a", "kind": "Deployment", "target": "x"},
			item.MetricLabels)
		assert.WithinDuration(t, time.Now(), item.Timestamp.Time, time.Minute)
		assert.False(t, item.Timestamp.After(time.Now()))
	}

	_, err = read("shop", serving.LoadTotal, "predictedmetric=waiting")
	assert.True(t, apierrors.IsServiceUnavailable(err))
	assert.ErrorContains(t, err, "PredictedMetric shop/waiting: there is no forecast: no sample has been read yet")
	_, err = read("shop", serving.Load, "")
	assert.True(t, apierrors.IsBadRequest(err))
	assert.ErrorContains(t, err, "matches 2 PredictedMetrics (a, waiting)")
	_, err = read("other", serving.LoadTotal, "predictedmetric=a")
	assert.True(t, apierrors.IsNotFound(err))
	assert.ErrorContains(t, err, `in namespace "other" matches no PredictedMetric`)
	_, err = read("shop", "requests", "")
	assert.True(t, apierrors.IsNotFound(err))
	assert.ErrorContains(t, err, `there is no metric "requests"`)
}

func TestServerHandlesPlainHTTP(t *testing.T) {
	waiting := servingtest.Changed(fresh("waiting", "y"), func(s *snapshot.Snapshot) { s.NewestSample = time.Time{} })
	s := serve(t, fresh("a", "x"), waiting)

	unavailable := s.get(t, totalPath+"?labelSelector=predictedmetric%3Dwaiting", hpaUser)
	assert.Equal(t, http.StatusServiceUnavailable, unavailable.code)
	assert.Empty(t, unavailable.header.Get("Retry-After"), "a client of Kubernetes would wait for so long")
	var status metav1.Status
	require.NoError(t, json.Unmarshal(unavailable.body, &status))
	assert.Equal(t, "Failure", status.Status)

	assert.Equal(t, http.StatusBadRequest, s.get(t, totalPath+"?labelSelector=%3D%3D", hpaUser).code,
		"a selector that cannot be read")
	assert.Equal(t, http.StatusMethodNotAllowed, s.get(t, totalPath+"?watch=true", hpaUser).code)
	var list v1beta1.ExternalMetricValueList
	const kubectlGet = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	s.get(t, totalPath+"?labelSelector=predictedmetric%3Da", hpaUser, "Accept", kubectlGet).decode(t, &list)
	assert.Equal(t, metav1.TypeMeta{APIVersion: "external.metrics.k8s.io/v1beta1", Kind: "ExternalMetricValueList"},
		list.TypeMeta)
	assert.Len(t, list.Items, 1)
}

func TestServerAuthorizesClientsThroughTheCluster(t *testing.T) {
	s := serve(t, fresh("a", "x"))
	asProxy := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{s.cluster.proxy}}
	const user = "X-Remote-User"
	require.Eventually(t, func() bool { // the aggregator's authority is read after the start
		return s.do(t, asProxy, totalPath, "", user, hpaUser).code == http.StatusOK
	}, 30*time.Second, 10*time.Millisecond)
	for _, c := range []struct {
		name string
		path string
		as   func(path string) answer
		code int
	}{
		{"the HPA's token", totalPath, func(p string) answer { return s.get(t, p, hpaUser) }, http.StatusOK},
		{"a user without the right", totalPath,
			func(p string) answer { return s.get(t, p, visitorUser) }, http.StatusForbidden},
		{"no one", totalPath, func(p string) answer { return s.get(t, p, "") }, http.StatusForbidden},
		{"an invalid token", totalPath, func(p string) answer { return s.get(t, p, "made-up") },
			http.StatusUnauthorized},
		{"the HPA through the aggregator", totalPath,
			func(p string) answer { return s.do(t, asProxy, p, "", user, hpaUser) }, http.StatusOK},
		{"a visitor through the aggregator", totalPath,
			func(p string) answer { return s.do(t, asProxy, p, "", user, visitorUser) }, http.StatusForbidden},
		{"one who claims to be the aggregator", totalPath,
			func(p string) answer { return s.get(t, p, "", user, hpaUser) }, http.StatusForbidden},
		{"metrics for the monitor", "/metrics", func(p string) answer { return s.get(t, p, monitorUser) },
			http.StatusOK},
		{"metrics for a visitor", "/metrics",
			func(p string) answer { return s.get(t, p, visitorUser) }, http.StatusForbidden},
		{"discovery for a visitor", "/apis", func(p string) answer { return s.get(t, p, visitorUser) }, http.StatusOK},
		{"profiles, which are off, for an administrator", "/debug/pprof/", func(p string) answer {
			return s.do(t, asProxy, p, "", user, "admin", "X-Remote-Group", "system:masters")
		}, http.StatusNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.as(c.path)
			assert.Equal(t, c.code, got.code, "%s", got.body)
		})
	}
	assert.Contains(t, string(s.get(t, "/metrics", monitorUser).body),
		`metrics_apiserver_metric_freshness_seconds_count{group="external.metrics.k8s.io"}`)
}

func TestServerIsDiscovered(t *testing.T) {
	s := serve(t)
	resources := []metav1.APIResource{}
	for _, name := range []string{serving.LoadTotal, serving.Load, serving.Replicas} {
		resources = append(resources,
			metav1.APIResource{Name: name, Namespaced: true, Kind: "ExternalMetricValueList",
				Verbs: metav1.Verbs{"get"}})
	}

	var list metav1.APIResourceList
	s.get(t, "/apis/external.metrics.k8s.io/v1beta1", visitorUser).decode(t, &list)
	assert.Equal(t, metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: "external.metrics.k8s.io/v1beta1", APIResources: resources,
	}, list)

	var groups metav1.APIGroupList
	s.get(t, "/apis", visitorUser).decode(t, &groups)
	require.Len(t, groups.Groups, 1)
	assert.Equal(t, "external.metrics.k8s.io", groups.Groups[0].Name)

	// This is the document that the cluster's API server requests.
	var aggregated apidiscovery.APIGroupDiscoveryList
	s.get(t, "/apis", visitorUser, "Accept", discovery.AcceptV2).decode(t, &aggregated)
	require.Len(t, aggregated.Items, 1)
	assert.Equal(t, "external.metrics.k8s.io", aggregated.Items[0].Name)
	require.Len(t, aggregated.Items[0].Versions, 1)
	assert.Equal(t, apidiscovery.DiscoveryFreshnessCurrent, aggregated.Items[0].Versions[0].Freshness)

	client, err := discovery.NewDiscoveryClientForConfig(s.config(visitorUser))
	require.NoError(t, err)
	for _, legacy := range []bool{false, true} {
		client.UseLegacyDiscovery = legacy
		_, found, err := client.ServerGroupsAndResources()
		require.NoError(t, err)
		require.Len(t, found, 1)
		assert.Equal(t, "external.metrics.k8s.io/v1beta1", found[0].GroupVersion)
		var names []string
		for _, r := range found[0].APIResources {
			names = append(names, r.Name)
			assert.Equal(t, metav1.Verbs{"get"}, r.Verbs)
			assert.True(t, r.Namespaced)
		}
		assert.ElementsMatch(t, []string{serving.LoadTotal, serving.Load, serving.Replicas}, names)
	}
}

func TestServerDescribesItself(t *testing.T) {
	s := serve(t)
	const path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{resource}"
	type document struct {
		OpenAPI, Swagger  string
		Info              struct{ Title, Version string }
		Paths             map[string]any
		Definitions       map[string]any
		ServerRelativeURL string
		Components        struct{ Schemas map[string]any }
	}
	const schema = "io.k8s.metrics.pkg.apis.external_metrics.v1beta1.ExternalMetricValueList"

	var v2 document
	s.get(t, "/openapi/v2", visitorUser).decode(t, &v2)
	assert.Equal(t, "2.0", v2.Swagger)
	assert.Equal(t, serverName, v2.Info.Title)
	assert.Equal(t, "v1.2.3", v2.Info.Version)
	assert.Contains(t, v2.Paths, path)
	assert.Contains(t, v2.Definitions, schema)

	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		}
	}
	s.get(t, "/openapi/v3", visitorUser).decode(t, &index)
	require.Contains(t, index.Paths, "apis/external.metrics.k8s.io/v1beta1")
	var v3 document
	s.get(t, index.Paths["apis/external.metrics.k8s.io/v1beta1"].ServerRelativeURL, visitorUser).decode(t, &v3)
	assert.Equal(t, serverName, v3.Info.Title)
	assert.Equal(t, "v1.2.3", v3.Info.Version)
	assert.Contains(t, v3.Paths, path)
	assert.Contains(t, v3.Components.Schemas, schema)

	var info version.Info
	s.get(t, "/version", visitorUser).decode(t, &info)
	assert.Equal(t, "v1.2.3", info.GitVersion)
	assert.Equal(t, "1", info.Major)
	assert.Equal(t, "2", info.Minor)
}

func TestServerIsReadyWhenThereIsData(t *testing.T) {
	s := serve(t)
	require.Eventually(t, func() bool { return s.get(t, "/readyz", "").code == http.StatusOK },
		30*time.Second, 10*time.Millisecond)

	noData := errors.New("nothing has been read")
	s.unready.Store(&noData)
	unready := s.get(t, "/readyz", "")
	assert.Equal(t, http.StatusInternalServerError, unready.code)
	assert.Contains(t, string(unready.body), "[-]data failed")
	assert.Equal(t, http.StatusOK, s.get(t, "/livez", "").code)

	s.unready.Store(nil)
	assert.Equal(t, http.StatusOK, s.get(t, "/readyz", "").code)
}

func TestServerStops(t *testing.T) {
	s := serve(t)
	require.NoError(t, s.stop())
	_, err := net.DialTimeout("tcp", s.server.Addr().String(), time.Second)
	assert.Error(t, err, "still listening")
}

// certificates is a serving certificate that changes.
type certificates struct {
	mu       sync.Mutex
	cert     []byte
	key      []byte
	listener dynamiccertificates.Listener
}

func (c *certificates) Name() string { return "test" }

func (c *certificates) CurrentCertKeyContent() (cert, key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cert, c.key
}

func (c *certificates) AddListener(l dynamiccertificates.Listener) { c.listener = l }

func (c *certificates) set(t *testing.T, host string) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	require.NoError(t, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cert, c.key = cert, key
}

func TestServingCertificateChangesWithoutARestart(t *testing.T) {
	var changing certificates
	changing.set(t, "first")
	o := testOptions(t, newCluster(t))
	server, err := o.NewServer(Config{
		Provider: New(servingtest.NewMemory(), time.Now), Ready: func() error { return nil },
		Version: "v1.2.3", Certificate: &changing,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	serves := func(host string) func() bool {
		return func() bool {
			connection, err := tls.Dial("tcp", server.Addr().String(), &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				return false
			}
			defer connection.Close()
			return connection.ConnectionState().PeerCertificates[0].VerifyHostname(host) == nil
		}
	}
	require.Eventually(t, serves("first"), 30*time.Second, 10*time.Millisecond)
	changing.set(t, "second")
	changing.listener.Enqueue()
	require.Eventually(t, serves("second"), 30*time.Second, 10*time.Millisecond)
}

// A server that cannot be made leaves no listener.
func TestServersThatCannotBeMade(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, c := range map[string]struct {
		change  func(*Options, *cluster)
		message string
	}{
		"no cluster": {func(o *Options, _ *cluster) { o.Kubeconfig = "" },
			`--kubeconfig "": unable to load in-cluster configuration`},
		"no kubeconfig": {func(o *Options, _ *cluster) { o.Kubeconfig = "/none" }, `--kubeconfig "/none": stat /none`},
		"no certificate": {func(o *Options, _ *cluster) {
			o.Generic.SecureServing.ServerCert.CertKey = genericoptions.CertKey{CertFile: "/none.crt",
				KeyFile: "/none.key"}
		}, "/none.crt"},
		"cluster down": {func(_ *Options, c *cluster) { c.server.Close() },
			"unable to load configmap based request-header-client-ca-file"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			o := testOptions(t, cluster)
			listener := o.Generic.SecureServing.Listener
			c.change(o, cluster)
			_, err := o.NewServer(Config{Provider: New(servingtest.NewMemory(), time.Now),
				Ready: func() error { return nil }, Version: "v1.2.3"})
			require.ErrorContains(t, err, c.message)
			_ = listener.Close() // if the options were rejected before it was used
			_, err = net.DialTimeout("tcp", listener.Addr().String(), time.Second)
			assert.Error(t, err, "still listening")
		})
	}
}

func TestOptions(t *testing.T) {
	o := NewOptions()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	require.NoError(t, fs.Parse([]string{"--kubeconfig=/k", "--secure-port=8443", "--bind-address=127.0.0.1",
		"--tls-min-version=VersionTLS13"}))
	assert.NoError(t, o.Validate())
	assert.Equal(t, "/k", o.Kubeconfig)
	assert.Equal(t, 8443, o.Generic.SecureServing.BindPort)
	const hpaSyncPeriod = 15 * time.Second
	assert.Greater(t, o.Generic.Authorization.AllowCacheTTL, 10*hpaSyncPeriod, "HPAs are seldom asked about")
	assert.Less(t, o.Generic.Authorization.DenyCacheTTL, hpaSyncPeriod, "who is given the right need not wait")

	groups := o.FlagSets()
	assert.Equal(t, []string{"cluster", "secure serving"}, groups.Order)

	require.NoError(t, fs.Parse([]string{"--secure-port=0"}))
	err := o.Validate()
	assert.ErrorContains(t, err, "--secure-port 0 must be between 1 and 65535")
}

func TestDefaultPortIsOpenToAll(t *testing.T) {
	assert.Greater(t, NewOptions().Generic.SecureServing.BindPort, 1023)
}

package externalmetrics

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	externalclient "k8s.io/metrics/pkg/client/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/foresail/foresail/adapter/door/externalmetrics/forward"
	"github.com/foresail/foresail/adapter/serving"
)

// secondProvider is what a second adapter of the same library has.
type secondProvider struct {
	mu    sync.Mutex
	users []string // who asked
}

func (p *secondProvider) ListAllExternalMetrics() []provider.ExternalMetricInfo {
	return []provider.ExternalMetricInfo{{Metric: "queue"}, {Metric: serving.Load},
		{Metric: "externalmetrics"}, {Metric: "queue"}}
}

func (p *secondProvider) GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector,
	info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	user, _ := request.UserFrom(ctx)
	p.mu.Lock()
	p.users = append(p.users, user.GetName())
	p.mu.Unlock()
	n := 1
	switch info.Metric {
	case "queue":
	case "long":
		n = 3000 // which the library compresses for who accepts that
	case "broken":
		return nil, errors.New("the database is down")
	case "busy":
		return nil, apierrors.NewTooManyRequests("too many requests", 7)
	default:
		return nil, provider.NewMetricNotFoundError(schema.GroupResource{Group: "example.com", Resource: info.Metric},
			info.Metric)
	}
	list := &external_metrics.ExternalMetricValueList{}
	for i := range n {
		list.Items = append(list.Items, external_metrics.ExternalMetricValue{
			MetricName: info.Metric, MetricLabels: map[string]string{"namespace": namespace,
				"selector": selector.String(), "n": fmt.Sprint(i)},
			Timestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)), Value: resource.MustParse("12345678901234567m"),
		})
	}
	return list, nil
}

// serveSecond serves a second adapter that the library makes, in a cluster of its own. It returns
// its address and the file of its certificate's authority.
func serveSecond(t testing.TB, p provider.ExternalMetricsProvider) (string, string) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("second", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	require.NoError(t, os.WriteFile(certFile, cert, 0o600))
	require.NoError(t, os.WriteFile(keyFile, key, 0o600))
	o := testOptions(t, newCluster(t))
	o.Generic.SecureServing.ServerCert.CertKey = genericoptions.CertKey{CertFile: certFile, KeyFile: keyFile}
	config, err := o.genericConfig()
	require.NoError(t, err)
	config.EffectiveVersion = newBuild("v0.1.0")
	config.OpenAPIConfig, config.OpenAPIV3Config = openAPIConfigs("v0.1.0", false)
	server, err := apiserver.CompletedConfig{CompletedConfig: config.Complete()}.New("second", nil, p)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.GenericAPIServer.PrepareRun().RunWithContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	running := &served{server: &Server{listener: o.Generic.SecureServing.Listener}}
	require.Eventually(t, func() bool { return running.get(t, "/livez", "").code == http.StatusOK },
		30*time.Second, 10*time.Millisecond)
	return o.Generic.SecureServing.Listener.Addr().String(), certFile
}

// serveTLS serves a second adapter that is a handler.
func serveTLS(t testing.TB, handler http.Handler) (string, string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(caFile, pemOf("CERTIFICATE", server.Certificate().Raw), 0o600))
	return server.Listener.Addr().String(), caFile
}

func newForwarder(t testing.TB, host, caFile string) *forward.Forwarder {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(ownUser), 0o600))
	f, err := forward.New(forward.Options{
		Host: host, CAFile: caFile, Cluster: &rest.Config{BearerTokenFile: token},
		Registerer: prometheus.NewRegistry(), Now: time.Now,
	})
	require.NoError(t, err)
	return f
}

const otherPath = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/"

// Values, errors, JSON, protobuf and compressed answers pass through as they are.
func TestForwardedAnswersAreTheSameToTheByte(t *testing.T) {
	var p secondProvider
	host, caFile := serveSecond(t, &p)
	s := serveBeside(t, newForwarder(t, host, caFile), fresh("a", "x"))
	pair := tls.Config{InsecureSkipVerify: true}
	direct := &served{server: &Server{listener: addressed(host)}}
	require.Eventually(t, func() bool {
		return direct.do(t, &pair, otherPath+"queue", ownUser).code == http.StatusOK
	}, 30*time.Second, 10*time.Millisecond)

	selector := "?labelSelector=" + url.QueryEscape("scaledobject.keda.sh/name=a,b in (c,d),!e")
	for metric, code := range map[string]int{
		"queue": http.StatusOK, "queue" + selector: http.StatusOK,
		"queue?labelSelector=a%3Db%2cc%20": http.StatusOK, "long": http.StatusOK,
		"queue?labelSelector=%3D%3D": http.StatusBadRequest, "none": http.StatusNotFound,
		"broken": http.StatusInternalServerError,
		"busy":   http.StatusTooManyRequests, forbiddenMetric: http.StatusForbidden,
	} {
		for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf",
			"application/vnd.kubernetes.protobuf;q=0.9,application/json;q=0.1", "*/*", "text/html"} {
			for _, encoding := range []string{"identity", "gzip"} {
				header := []string{"Accept", accept, "Accept-Encoding", encoding}
				want := direct.do(t, &pair, otherPath+metric, ownUser, header...)
				got := s.get(t, otherPath+metric, hpaUser, header...)
				if accept != "text/html" {
					assert.Equal(t, code, want.code, metric)
				}
				assert.Equal(t, want.code, got.code, metric)
				assert.Equal(t, want.body, got.body, "%s as %s", metric, accept)
				for _, name := range []string{"Content-Type", "Content-Encoding", "Vary"} {
					assert.Equal(t, want.header.Values(name), got.header.Values(name), name)
				}
				assert.Empty(t, got.header.Values("Retry-After"))
				assert.Len(t, got.header.Values("Cache-Control"), 1)
			}
		}
	}
	assert.Equal(t, "gzip", s.get(t, otherPath+"long", hpaUser, "Accept-Encoding",
		"gzip").header.Get("Content-Encoding"))

	client, err := externalclient.NewForConfig(s.config(hpaUser))
	require.NoError(t, err)
	list, err := client.NamespacedMetrics("shop").List("queue", labels.SelectorFromSet(labels.Set{"a": "b"}))
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, "12345678901234567m", list.Items[0].Value.String())
	own, err := client.NamespacedMetrics("shop").List(serving.Load, labels.Everything())
	require.NoError(t, err)
	assert.Equal(t, "1001m", own.Items[0].Value.String(), "a metric of both is Foresail's")
}

// addressed is a listener for the sake of its address.
type addressed string

func (a addressed) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (a addressed) Close() error              { return nil }
func (a addressed) Addr() net.Addr            { return a }
func (a addressed) Network() string           { return "tcp" }
func (a addressed) String() string            { return string(a) }

// Foresail authorizes the caller, and the second adapter authorizes Foresail.
func TestForwardingNeedsTheRightToRead(t *testing.T) {
	var p secondProvider
	host, caFile := serveSecond(t, &p)
	s := serveBeside(t, newForwarder(t, host, caFile))
	require.Eventually(t, func() bool { return s.get(t, otherPath+"queue", hpaUser).code == http.StatusOK },
		30*time.Second, 10*time.Millisecond)
	for token, code := range map[string]int{visitorUser: http.StatusForbidden, "": http.StatusForbidden,
		"made-up": http.StatusUnauthorized} {
		p.mu.Lock()
		p.users = nil
		p.mu.Unlock()
		assert.Equal(t, code, s.get(t, otherPath+"queue", token).code)
		p.mu.Lock()
		assert.Empty(t, p.users, "the second adapter is not asked")
		p.mu.Unlock()
	}
	asProxy := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{s.cluster.proxy}}
	require.Eventually(t, func() bool {
		return s.do(t, asProxy, otherPath+"queue", "", "X-Remote-User", hpaUser).code == http.StatusOK
	}, 30*time.Second, 10*time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	assert.Equal(t, []string{ownUser}, slices.Compact(p.users), "it sees Foresail, every caller who asked")
}

func TestDiscoveryListsTheMetricsOfBoth(t *testing.T) {
	host, caFile := serveSecond(t, &secondProvider{})
	s := serveBeside(t, newForwarder(t, host, caFile))
	want := []string{serving.LoadTotal, serving.Load, serving.Replicas, "queue", "externalmetrics"}
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		assert.Equal(t, want, s.aggregated(t))
	}, 30*time.Second, 10*time.Millisecond)
	assert.Equal(t, want, s.listed(t))

	client, err := discovery.NewDiscoveryClientForConfig(s.config(visitorUser))
	require.NoError(t, err)
	_, found, err := client.ServerGroupsAndResources()
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Len(t, found[0].APIResources, len(want))
}

// listed returns the metrics of the older discovery document.
func (s *served) listed(t testing.TB) []string {
	t.Helper()
	var list metav1.APIResourceList
	s.get(t, "/apis/external.metrics.k8s.io/v1beta1", visitorUser).decode(t, &list)
	var names []string
	for _, r := range list.APIResources {
		assert.Equal(t, metav1.Verbs{"get"}, r.Verbs)
		names = append(names, r.Name)
	}
	return names
}

// aggregated returns the metrics of the document that the cluster's API server requests.
func (s *served) aggregated(t require.TestingT) []string {
	r, err := http.NewRequest(http.MethodGet, s.url("/apis"), nil)
	require.NoError(t, err)
	r.Header.Set("Accept", discovery.AcceptV2)
	r.Header.Set("Authorization", "Bearer "+visitorUser)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	var list apidiscovery.APIGroupDiscoveryList
	require.NoError(t, json.NewDecoder(response.Body).Decode(&list))
	require.Len(t, list.Items, 1)
	require.Len(t, list.Items[0].Versions, 1)
	var names []string
	for _, r := range list.Items[0].Versions[0].Resources {
		names = append(names, r.Resource)
	}
	return names
}

// servesItsOwn checks that everything but what is forwarded works.
func (s *served) servesItsOwn(t *testing.T) {
	t.Helper()
	var list v1beta1.ExternalMetricValueList
	s.get(t, totalPath+"?labelSelector=predictedmetric%3Da", hpaUser).decode(t, &list)
	assert.Len(t, list.Items, 1)
	own := []string{serving.LoadTotal, serving.Load, serving.Replicas}
	assert.Equal(t, own, s.listed(t))
	assert.Equal(t, own, s.aggregated(t))
	require.Eventually(t, func() bool { return s.get(t, "/readyz", "").code == http.StatusOK },
		30*time.Second, 10*time.Millisecond)
}

func TestServerStartsWithoutTheSecondAdapter(t *testing.T) {
	_, caFile := serveTLS(t, http.NotFoundHandler())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host := listener.Addr().String()
	require.NoError(t, listener.Close()) // no one listens
	s := serveBeside(t, newForwarder(t, host, caFile), fresh("a", "x"))
	s.servesItsOwn(t)
	down := s.get(t, otherPath+"queue", hpaUser)
	assert.Equal(t, http.StatusServiceUnavailable, down.code)
	assert.Empty(t, down.header.Get("Retry-After"))
	var status metav1.Status
	require.NoError(t, json.Unmarshal(down.body, &status))
	assert.Equal(t, metav1.StatusReasonServiceUnavailable, status.Reason)
	assert.Contains(t, status.Message,
		`Foresail has no metric "queue", and the second adapter https://`+host+` does not answer: `)
	assert.Contains(t, status.Message, "connection refused")

	proto := s.get(t, otherPath+"queue", hpaUser, "Accept", "application/vnd.kubernetes.protobuf")
	assert.Equal(t, "application/vnd.kubernetes.protobuf", proto.header.Get("Content-Type"),
		"Foresail's own answer is in the form that is accepted")
}

// The reads that wait for the second adapter hold up nothing else.
func TestSecondAdapterThatHangsHoldsNothingUp(t *testing.T) {
	arrived, over := make(chan struct{}, 1000), make(chan struct{})
	host, caFile := serveTLS(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path != "/apis/external.metrics.k8s.io/v1beta1" {
			arrived <- struct{}{}
		}
		<-over
	}))
	t.Cleanup(func() { close(over) }) // before the server is closed
	s := serveBeside(t, newForwarder(t, host, caFile), fresh("a", "x"))
	const waiting = 20
	var reads sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range waiting {
		reads.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(otherPath+"queue"), nil)
			if !assert.NoError(t, err) {
				return
			}
			r.Header.Set("Authorization", "Bearer "+hpaUser)
			client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
				DisableKeepAlives: true}}
			if response, err := client.Do(r); err == nil {
				_ = response.Body.Close()
			}
		})
	}
	for range waiting {
		<-arrived
	}
	s.servesItsOwn(t)
	cancel()
	reads.Wait()
}

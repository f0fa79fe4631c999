package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// metricServer serves one external metric of a fixed value and remembers who asked for it.
type metricServer struct {
	mu    sync.Mutex
	users map[string]bool
}

func (s *metricServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const root = "/apis/external.metrics.k8s.io/v1beta1"
	var answer map[string]any
	switch {
	case r.TLS.PeerCertificates[0].Subject.CommonName != frontProxyUser:
		http.Error(w, "not the API server", http.StatusUnauthorized)
		return
	case r.URL.Path == root:
		answer = map[string]any{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "external.metrics.k8s.io/v1beta1",
			"resources": []any{map[string]any{
				"name": "load", "namespaced": true, "kind": "ExternalMetricValueList", "verbs": []string{"get"},
			}},
		}
	case strings.HasSuffix(r.URL.Path, "/load"):
		s.mu.Lock()
		s.users[r.Header.Get("X-Remote-User")] = true
		s.mu.Unlock()
		answer = map[string]any{
			"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1",
			"items": []any{map[string]any{
				"metricName": "load", "metricLabels": map[string]any{}, "value": "50",
				"timestamp": time.Now().UTC().Format(time.RFC3339),
			}},
		}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// startMetricServer serves with a certificate of the cluster, to clients that the API server's
// front proxy signed for.
func startMetricServer(t *testing.T, cluster *Cluster, handler http.Handler, host string) int {
	t.Helper()
	certFile, keyFile, err := cluster.ServingCertificate(host)
	require.NoError(t, err)
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	require.NoError(t, err)
	clients := x509.NewCertPool()
	require.True(t, clients.AppendCertsFromPEM(cluster.frontProxyCA.Cert))
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	var port int
	_, err = fmt.Sscanf(server.Listener.Addr().String(), "127.0.0.1:%d", &port)
	require.NoError(t, err)
	return port
}

// testAggregatedMetricScales has the real HPA controller read a metric through the real aggregation
// layer and scale on it.
func testAggregatedMetricScales(t *testing.T, cluster *Cluster) {
	handler := &metricServer{users: map[string]bool{}}
	api := AggregatedAPI{
		Group: "external.metrics.k8s.io", Version: "v1beta1",
		Namespace: "monitoring", Service: "metrics",
		Port: startMetricServer(t, cluster, handler, "metrics.monitoring.svc"),
	}
	// What manifests for a real cluster bring along is pointed to this machine.
	apply(t, cluster, []byte(`
apiVersion: v1
kind: Namespace
metadata: {name: monitoring}
---
apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: monitoring}
spec: {selector: {app: metrics}, ports: [{port: 443}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 200
  versionPriority: 200
  insecureSkipTLSVerify: true
  service: {namespace: monitoring, name: metrics, port: 443}
`))
	require.NoError(t, cluster.RegisterAggregated(t.Context(), api))
	require.NoError(t, cluster.WaitAggregated(timeout(t), api.Name()))

	apply(t, cluster, deployment("scaled", 1, "1ms"), []byte(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaled}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}
  maxReplicas: 10
  metrics:
  - type: External
    external: {metric: {name: load}, target: {type: AverageValue, averageValue: "10"}}
`))
	waitPods(t, cluster, "scaled", 5, "ready", isReady)
	hpa, err := cluster.Client().AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), "scaled",
		metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 5, hpa.Status.DesiredReplicas)

	handler.mu.Lock()
	defer handler.mu.Unlock()
	require.Contains(t, handler.users, "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
		"the controller acts with the permissions of its own service account")
}

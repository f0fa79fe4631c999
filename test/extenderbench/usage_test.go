package extenderbench

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"math"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/foresail/foresail/test/controlplane"
)

// usageResolution is how often metrics-server reads kubelets.
const usageResolution = 15 * time.Second

// usage plays metrics-server: it tells what nodes use, new every 15 seconds.
type usage struct {
	crowd crowd

	mu      sync.Mutex
	turn    int64
	encoded []byte
}

// serveUsage has the API server ask this process for metrics.k8s.io until the benchmark ends.
func serveUsage(b *testing.B, cluster *controlplane.Cluster, c crowd) {
	b.Helper()
	const namespace, service = "kube-system", "metrics-server"
	cert, key, err := cluster.ServingCertificate(service + "." + namespace + ".svc")
	require.NoError(b, err)
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(b, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	server := &http.Server{
		Handler: &usage{crowd: c}, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			b.Error(err)
		}
	})
	b.Cleanup(func() { _ = server.Close(); serving.Wait() })
	api := controlplane.AggregatedAPI{Group: "metrics.k8s.io", Version: "v1beta1", Port: listener.Addr().(*net.TCPAddr).Port, Namespace: namespace, Service: service}
	require.NoError(b, cluster.RegisterAggregated(b.Context(), api))
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	require.NoError(b, cluster.WaitAggregated(ctx, api.Name()))
}

func (u *usage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/apis/metrics.k8s.io/v1beta1":
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "metrics.k8s.io/v1beta1",
			APIResources: []metav1.APIResource{{Name: "nodes", Kind: "NodeMetrics", Verbs: metav1.Verbs{"get", "list"}}},
		})
	case "/apis/metrics.k8s.io/v1beta1/nodes":
		_, _ = w.Write(u.list(time.Now()))
	default:
		http.NotFound(w, r)
	}
}

// list is what nodes used in the last 15 seconds that are complete.
func (u *usage) list(now time.Time) []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	turn := now.UnixNano() / int64(usageResolution)
	if turn == u.turn {
		return u.encoded
	}
	u.turn = turn
	at := metav1.NewTime(time.Unix(0, turn*int64(usageResolution)))
	list := metricsv1beta1.NodeMetricsList{TypeMeta: metav1.TypeMeta{Kind: "NodeMetricsList", APIVersion: "metrics.k8s.io/v1beta1"}}
	for i := range u.crowd.nodes {
		share := shareOf(i, turn)
		list.Items = append(list.Items, metricsv1beta1.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: u.crowd.name(i), CreationTimestamp: at}, Timestamp: at, Window: metav1.Duration{Duration: usageResolution},
			Usage: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewScaledQuantity(int64(15.89e9*share), resource.Nano),
				corev1.ResourceMemory: *resource.NewQuantity(int64(float64(60<<30)*share), resource.BinarySI),
			},
		})
	}
	u.encoded, _ = json.Marshal(list) // cannot fail: it is made of numbers and names
	return u.encoded
}

// shareOf is what share of itself a node uses: between a fifth and four fifths by the node, and a little to and fro.
func shareOf(node int, turn int64) float64 {
	return 0.5 + 0.3*math.Sin(float64(node)) + 0.03*math.Sin(float64(turn)/7+float64(node%31))
}

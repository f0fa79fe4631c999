package monitoring

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/foresail/foresail/test/env/controlplane"
)

// ServeNodeMetrics has the API server ask this process for the NodeMetrics of metrics.k8s.io, until
// ctx ends. It returns when the API server does.
func ServeNodeMetrics(ctx context.Context, cluster *controlplane.Cluster,
	nodes func() []metricsv1beta1.NodeMetrics) error {
	api := controlplane.AggregatedAPI{Group: metricsv1beta1.GroupName, Version: "v1beta1", Namespace: "kube-system",
		Service: "node-metrics"}
	cert, key, err := cluster.ServingCertificate(api.Service + "." + api.Namespace + ".svc")
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	api.Port = listener.Addr().(*net.TCPAddr).Port
	version := metricsv1beta1.SchemeGroupVersion.String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/"+version, answer(func() any {
		return metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version,
			APIResources: []metav1.APIResource{{Name: "nodes", Kind: "NodeMetrics",
				Verbs: metav1.Verbs{"get", "list"}}},
		}
	}))
	mux.HandleFunc("GET /apis/"+version+"/nodes", answer(func() any {
		return metricsv1beta1.NodeMetricsList{TypeMeta: metav1.TypeMeta{Kind: "NodeMetricsList", APIVersion: version},
			Items: nodes()}
	}))
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "The server of NodeMetrics has ended")
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := cluster.RegisterAggregated(ctx, api); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return cluster.WaitAggregated(ctx, api.Name())
}

func answer(content func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(content()) // an error is the client's, who has gone
	}
}

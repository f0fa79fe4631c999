package monitoring

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/workload"
)

// kubelets are the endpoints, of all nodes of a cluster, at which kubelets say what their pods use.
// They listen at one address, that of all nodes; each node has a path of its own,
// [controlplane.ResourceMetricsPath].
type kubelets struct {
	pods     cache.SharedIndexInformer
	client   *http.Client
	listener net.Listener

	mu    sync.Mutex
	nodes map[string]*nodeWork
}

// nodeWork is what the pods of a node, those that are gone included, have worked.
type nodeWork struct {
	seconds float64 // of all; it never falls
	last    map[types.UID]float64
}

// startKubelets serves until ctx ends.
func startKubelets(ctx context.Context, cluster *controlplane.Cluster, selector string) (*kubelets, error) {
	pods, err := workload.NewPodInformer(cluster.Client(), "", selector)
	if err != nil {
		return nil, err
	}
	cert, key, err := cluster.ServingCertificate("127.0.0.1")
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	k := &kubelets{
		pods:   pods,
		client: &http.Client{Timeout: kubeletTimeout / 2, Transport: &http.Transport{MaxIdleConnsPerHost: 1}},
		nodes:  map[string]*nodeWork{},
	}
	if k.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	go k.pods.RunWithContext(ctx)
	k.serve(ctx, pair)
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return nil, context.Cause(ctx)
	}
	return k, nil
}

func (k *kubelets) port() int { return k.listener.Addr().(*net.TCPAddr).Port }

func (k *kubelets) serve(ctx context.Context, pair tls.Certificate) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+controlplane.ResourceMetricsPath("{node}"), func(w http.ResponseWriter, r *http.Request) {
		k.serveNode(w, r, r.PathValue("node"))
	})
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: kubeletTimeout,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
	}
	go func() {
		if err := server.ServeTLS(k.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "The kubelets' endpoints have ended")
		}
	}()
	context.AfterFunc(ctx, func() {
		_ = server.Close() // nobody is waiting any more
		k.client.CloseIdleConnections()
	})
}

func (k *kubelets) serveNode(w http.ResponseWriter, r *http.Request, node string) {
	usages := k.read(r.Context(), node)
	registry := prometheus.NewRegistry()
	registry.MustRegister(nodeCollector{usages: usages, cpu: k.nodeCPU(node, usages), at: time.Now()})
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// read asks the running pods of a node, all at once, what they use. One that does not answer is left out.
func (k *kubelets) read(ctx context.Context, node string) []podUsage {
	var (
		mu     sync.Mutex
		usages []podUsage
		group  errgroup.Group
	)
	group.SetLimit(32)
	for _, object := range k.pods.GetStore().List() {
		pod := object.(*corev1.Pod)
		if pod.Spec.NodeName != node || pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
			continue
		}
		group.Go(func() error {
			usage, err := readUsage(ctx, k.client, pod)
			if err != nil {
				klog.FromContext(ctx).V(2).Info("Pod does not say what it uses", "pod", klog.KObj(pod), "error", err)
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			usages = append(usages, usage)
			return nil
		})
	}
	_ = group.Wait() // none fails as a whole
	return usages
}

// nodeCPU returns the seconds that all pods the node ever had have worked, and the node itself.
func (k *kubelets) nodeCPU(node string, usages []podUsage) float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	work := k.nodes[node]
	if work == nil {
		work = &nodeWork{seconds: startCPU, last: map[types.UID]float64{}}
		k.nodes[node] = work
	}
	for _, usage := range usages {
		work.add(usage.pod.UID, usage.cpu())
	}
	return work.seconds
}

// add counts what a pod has worked since it was last asked. Two readings of one pod may be counted
// in either order.
func (w *nodeWork) add(pod types.UID, seconds float64) {
	if more := seconds - w.last[pod]; more > 0 {
		w.seconds += more
		w.last[pod] = seconds
	}
}

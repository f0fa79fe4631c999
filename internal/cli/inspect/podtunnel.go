package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// podTunnel is an address of this host from which connections go to a port of a pod, through the
// API server and the kubelet of the pod's node. They authenticate each other, which the certificate
// of a pod does not allow for.
type podTunnel struct {
	address string
	broken  atomic.Pointer[error] // why a connection broke off, of the newest one that did
}

// openTunnel opens a tunnel, until ctx ends.
func openTunnel(ctx context.Context, config *rest.Config, client kubernetes.Interface, namespace, pod,
	port string) (*podTunnel, error) {
	to := client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	dialer, err := forwardDialer(config, to)
	if err != nil {
		return nil, err
	}
	t, ready := &podTunnel{}, make(chan struct{})
	ctx = klog.NewContext(ctx, logr.New(t)) // it tells its errors to a log alone, harmless ones at the end among them
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, []string{"127.0.0.1"},
		[]string{":" + port}, ready, io.Discard, io.Discard)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return nil, err
	}
	t.address = fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
	return t, nil
}

// explain adds to the error of a request why its connection broke off.
func (t *podTunnel) explain(err error) error {
	if broken := t.broken.Load(); err != nil && broken != nil {
		return fmt.Errorf("%w: %w", err, *broken)
	}
	return err
}

// A podTunnel is the log of what forwards for it.

func (t *podTunnel) Init(logr.RuntimeInfo)    {}
func (t *podTunnel) Enabled(int) bool         { return false }
func (t *podTunnel) Info(int, string, ...any) {}

// Error keeps what the kubelet says. That a connection has ended, its user knows.
func (t *podTunnel) Error(err error, _ string, _ ...any) {
	if connection := (*net.OpError)(nil); !errors.Is(err, io.EOF) && !errors.As(err, &connection) {
		t.broken.Store(&err)
	}
}

func (t *podTunnel) WithValues(...any) logr.LogSink { return t }
func (t *podTunnel) WithName(string) logr.LogSink   { return t }

// forwardDialer uses WebSockets, and SPDY with API servers and proxies that know no better, as kubectl does.
func forwardDialer(config *rest.Config, to *url.URL) (httpstream.Dialer, error) {
	webSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(webSocket,
		spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost,
			to), func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		}), nil
}

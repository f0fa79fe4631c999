package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// podTunnel forwards an address of this host to a port of a pod, through the API server and the kubelet of the pod's node, until
// ctx ends. They authenticate each other, which the certificate of a pod does not allow for.
func podTunnel(ctx context.Context, config *rest.Config, client kubernetes.Interface, namespace, pod, port string) (address string, err error) {
	to := client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	dialer, err := forwardDialer(config, to)
	if err != nil {
		return "", err
	}
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, []string{"127.0.0.1"}, []string{":" + port}, ready, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return "", err
	case <-ctx.Done():
		return "", ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), nil
}

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
	return portforward.NewFallbackDialerForStreaming(webSocket, spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, to), func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

package inspect

import (
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// forwardPorts plays the API server and the kubelet of a pod: it accepts a WebSocket, and connects
// each pair of streams to an address if it is for a port.
func forwardPorts(w http.ResponseWriter, r *http.Request, port, address string) {
	upgrader := websocket.Upgrader{Subprotocols: []string{"SPDY/3.1+" + portforward.PortForwardProtocolV1Name}}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the client has its answer
	}
	streams := make(chan httpstream.Stream)
	tunnel, err := spdy.NewServerConnection(portforward.NewTunnelingConnectionWithLogger(klog.Background(), socket),
		func(s httpstream.Stream, _ <-chan struct{}) error {
			streams <- s
			return nil
		})
	if err != nil {
		return
	}
	defer func() { _ = tunnel.Close() }()
	failures := map[string]httpstream.Stream{} // the streams for errors, which come first, by request
	for {
		select {
		case <-tunnel.CloseChan():
			return
		case s := <-streams:
			request := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				failures[request] = s
				continue
			}
			go connect(s, failures[request], port, address)
		}
	}
}

func connect(data, failure httpstream.Stream, port, address string) {
	defer func() { _, _ = data.Close(), failure.Close() }()
	if asked := data.Headers().Get(corev1.PortHeader); asked != port {
		_, _ = fmt.Fprintf(failure, "nothing listens at %s", asked)
		return
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		_, _ = io.WriteString(failure, err.Error())
		return
	}
	defer func() { _ = conn.Close() }()
	go func() { _, _ = io.Copy(conn, data) }()
	_, _ = io.Copy(data, conn)
}

// Package httpserve has what the HTTP servers of Foresail share.
package httpserve

import (
	"context"
	"net"
	"net/http"
	"time"
)

// stopTimeout is how long requests under way may take after the context has ended.
const stopTimeout = 5 * time.Second

// StopWith waits until the context ends, then takes no new requests, lets those under way finish,
// and closes the listener.
func StopWith(ctx context.Context, server *http.Server, listener net.Listener) {
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if server.Shutdown(ending) != nil {
		_ = server.Close() // the requests took too long
	}
	_ = listener.Close() // if the server has not begun to serve
}

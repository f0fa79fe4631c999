package workload

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// servers are the two HTTP servers of a pod.
type servers struct {
	app, metrics *http.Server
}

func newServers(p *Pod) *servers {
	return &servers{app: newServer(p.App()), metrics: newServer(p.Metrics())}
}

func newServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
}

// App returns the handler of the pod's app port: /healthz answers at once, every other path is a
// request to serve.
func (p *Pod) App() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "ok") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if err := p.Do(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		answer(w, p.name)
	})
	return mux
}

func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text+"\n") // a client that has gone needs no answer
}

// Serve answers on both listeners until Shutdown or until one of them fails, whose error it
// returns; it closes both. It may be called once.
func (p *Pod) Serve(app, metrics net.Listener) error {
	var group errgroup.Group
	serve := func(server, other *http.Server, listener net.Listener) {
		group.Go(func() error {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				_ = other.Close()
				return err
			}
			return nil
		})
	}
	serve(p.servers.app, p.servers.metrics, app)
	serve(p.servers.metrics, p.servers.app, metrics)
	return group.Wait()
}

// Shutdown stops listening at once, waits for the requests under way until ctx ends, and then cuts
// every connection.
func (p *Pod) Shutdown(ctx context.Context) {
	_ = p.servers.metrics.Close() // errors of closing say nothing that could be acted on
	_ = p.servers.app.Shutdown(ctx)
	_ = p.servers.app.Close()
}

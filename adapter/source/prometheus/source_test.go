package prometheus

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// signal is a sink that tells when it has been told that all is well.
type signal struct {
	*recorder
	well chan struct{}
}

func (s *signal) SourceFailed(err error) {
	s.recorder.SourceFailed(err)
	if err == nil {
		select {
		case s.well <- struct{}{}:
		default:
		}
	}
}

// The whole way over a real connection: what is asked, and what arrives.
func TestReadsOverHTTP(t *testing.T) {
	queries := make(chan *http.Request, 10)
	body := matrix(pod("a", 1, 2, 3), pod("b", 4, 5, 6), pod("stranger", 7).label("namespace", "bank"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if assert.NoError(t, r.ParseForm()) {
			queries <- r
		}
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()

	s := New(Options{UserAgent: "foresail/test"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	sink := &signal{recorder: newRecorder(), well: make(chan struct{}, 1)}
	c := gauge()
	c.Address, c.Query = server.URL+"/prefix/", ` load{namespace="shop"} `
	require.NoError(t, s.Set(key("pm"), c, fleetOf("a", "b"), sink))
	<-sink.well
	s.Remove(key("pm"))
	cancel()
	require.NoError(t, <-done)

	q := <-queries
	assert.Equal(t, "/prefix/api/v1/query", q.URL.Path)
	assert.Equal(t, "load{namespace=\"shop\"}\n[12s]", q.Form.Get("query"), "the window and two intervals")
	assert.NotContains(t, q.Form, "time", "the server's clock decides")
	assert.Equal(t, "10001", q.Form.Get("limit"))
	assert.Equal(t, "foresail/test", q.UserAgent())
	assert.Empty(t, q.Header.Get("Authorization"))
	assert.Equal(t, []float64{1, 2, 3}, sink.values("a"))
	assert.Equal(t, []float64{4, 5, 6}, sink.values("b"))
	assert.Empty(t, sink.of("stranger"))
	assert.InDelta(t, time.Now().UnixMilli(), sink.of("a")[2].T, 60_000)
}

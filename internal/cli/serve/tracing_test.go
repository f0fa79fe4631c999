package serve

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/foresail/foresail/internal/cli/clitest"
)

// spans is an OpenTelemetry collector.
type spans struct {
	collector.UnimplementedTraceServiceServer
	received chan *collector.ExportTraceServiceRequest
}

func (s *spans) Export(_ context.Context,
	r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.received <- r
	return &collector.ExportTraceServiceResponse{}, nil
}

func tracingFile(t *testing.T, endpoint string) string {
	return clitest.File(t, "tracing.yaml",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: "+endpoint+"\nsamplingRatePerMillion: 0\n")
}

// TestTracesReachACollector: actions are sent whatever the rate is, reads are not.
func TestTracesReachACollector(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, s := grpc.NewServer(), &spans{received: make(chan *collector.ExportTraceServiceRequest, 10)}
	collector.RegisterTraceServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	o := tracingOptions{tracingFile(t, listener.Addr().String())}
	require.NoError(t, o.validate())
	traces, err := o.start(t.Context())
	require.NoError(t, err)
	_, read := traces.sampled.Tracer("test").Start(t.Context(), "read")
	read.End()
	_, action := traces.all.Tracer("test").Start(t.Context(), "action")
	action.End()
	traces.end(t.Context())
	require.Len(t, s.received, 1)
	sent := (<-s.received).GetResourceSpans()
	require.Len(t, sent, 1)
	assert.Equal(t, "action", sent[0].GetScopeSpans()[0].GetSpans()[0].GetName())
	about := map[string]string{}
	for _, a := range sent[0].GetResource().GetAttributes() {
		about[a.GetKey()] = a.GetValue().GetStringValue()
	}
	assert.Equal(t, "foresail", about["service.name"])
	assert.NotEmpty(t, about["service.instance.id"])
}

func TestNothingIsTracedByDefault(t *testing.T) {
	traces, err := (&tracingOptions{}).start(t.Context())
	require.NoError(t, err)
	_, span := traces.all.Tracer("test").Start(t.Context(), "action")
	assert.False(t, span.IsRecording())
	traces.end(t.Context())
}

func TestTracingConfigurationIsChecked(t *testing.T) {
	for _, path := range []string{
		filepath.Join(t.TempDir(), "none"),
		clitest.File(t, "other.yaml", "apiVersion: v1\nkind: Pod\n"),
		tracingFile(t, "localhost:4317\nunknown: 1"),
	} {
		require.ErrorContains(t, (&tracingOptions{path}).validate(),
			"must be a file with a TracingConfiguration of apiserver.config.k8s.io/v1: ", path)
	}
}

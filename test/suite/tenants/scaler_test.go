//go:build long

package tenants

import (
	"context"
	"crypto/x509"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/foresail/foresail/adapter/door/keda"
	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/internal/servertls/servertlstest"
	"github.com/foresail/foresail/test/env/ports"
)

// scaler is Foresail's port for KEDA, whose authority signs for tenants as well.
type scaler struct {
	address   string
	authority *servertlstest.Authority
	flags     []string
}

func newScaler(t *testing.T) *scaler {
	t.Helper()
	address, err := ports.TakeAddress()
	require.NoError(t, err)
	a := servertlstest.NewAuthority(t, "everybody's")
	folder := t.TempDir()
	certificate, key := a.Issue(t, servertlstest.Leaf(x509.ExtKeyUsageServerAuth, "foresail"))
	for name, content := range map[string][]byte{"ca.crt": a.PEM, "tls.crt": certificate, "tls.key": key} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	return &scaler{address, a, []string{"--keda-address", address, "--keda-cert-dir", folder}}
}

// client returns a client with a certificate that the authority has signed for a name.
func (s *scaler) client(t *testing.T, name string) externalscaler.ExternalScalerClient {
	t.Helper()
	config := s.authority.Client(t, servertlstest.Leaf(x509.ExtKeyUsageClientAuth, name), s.authority)
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return externalscaler.NewExternalScalerClient(connection)
}

// read reads predicted_load_total of a PredictedMetric as KEDA does, which takes whole thousandths.
func read(ctx context.Context, client externalscaler.ExternalScalerClient, namespace, name string) (float64, error) {
	answer, err := client.GetMetrics(ctx, &externalscaler.GetMetricsRequest{
		ScaledObjectRef: &externalscaler.ScaledObjectRef{
			Name: name, Namespace: namespace, ScalerMetadata: map[string]string{"predictedMetric": name},
		},
		MetricName: "predicted_load_total",
	})
	if err != nil {
		return 0, err
	}
	return math.Trunc(answer.MetricValues[0].MetricValueFloat*1000) / 1000, nil
}

// asKEDA returns a read of a PredictedMetric of the tenant with KEDA's own certificate.
func (n *tenant) asKEDA(t *testing.T, s *scaler, name string) func() (float64, error) {
	client := s.client(t, keda.DefaultClientName)
	return func() (float64, error) { return read(t.Context(), client, n.namespace, name) }
}

// otherCertificates reads what another tenant has with certificates that the authority has signed
// for names that are not KEDA's, on connection after connection. None may be answered.
func (n *tenant) otherCertificates(t *testing.T, s *scaler, other *tenant) {
	t.Helper()
	var answered atomic.Int64
	client := s.client(t, "system:serviceaccount:"+n.namespace+":default")
	n.keep(t, 20*time.Millisecond, func(int) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := read(ctx, client, other.namespace, "pods")
		if err == nil {
			answered.Add(1)
		}
		return err
	})
	t.Cleanup(func() { assert.Zero(t, answered.Load(), "reads with another's certificate that were answered") })
}

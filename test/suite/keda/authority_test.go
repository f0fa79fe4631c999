//go:build long

package keda_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/adapter/door/keda/externalscaler"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/suite/keda"
)

// tlsState is what both sides have of certificates.
type tlsState struct {
	authorities    []byte
	server, client controlplane.KeyPair
}

// Another authority takes the place of the one before in the three steps of the documentation, each
// with a restart of KEDA's operator. No handshake fails.
func TestAuthorityIsReplaced(t *testing.T) {
	a := newApp(t, "authority", 2.5, nil)
	a.becomesActive()
	first := currentTLS(t)
	next, err := controlplane.NewAuthority("next")
	require.NoError(t, err)
	second := tlsState{authorities: next.Cert}
	second.server, err = next.Server(host, "localhost")
	require.NoError(t, err)
	second.client, err = next.Client("keda-operator")
	require.NoError(t, err)
	both := slices.Concat(first.authorities, second.authorities)
	t.Cleanup(func() {
		first.apply(t)
		assert.NoError(t, shared.keda.RestartOperator())
	})
	failures := tlsFailures(t)
	for _, step := range []struct {
		what  string
		state tlsState
	}{
		{"both authorities", tlsState{both, first.server, first.client}},
		{"the new certificates", tlsState{both, second.server, second.client}},
		{"the new authority alone", second},
	} {
		step.state.apply(t)
		require.NoError(t, shared.keda.RestartOperator())
		a.eventually(2*time.Minute, step.what, func(c *assert.CollectT) {
			value, err := a.throughKEDA(c)
			require.NoError(c, err)
			assert.InDelta(c, 2.8, value, 0)
		})
	}
	assert.InDelta(t, failures, tlsFailures(t), 0)
}

// TestOtherClientsOfTheAuthorityAreRefused connects with certificates of other users of the
// cluster, for whom the authority of KEDA's certificate signs too.
func TestOtherClientsOfTheAuthorityAreRefused(t *testing.T) {
	for name, want := range map[string]codes.Code{
		"keda-operator":         codes.NotFound, // the PredictedMetric
		"mallory":               codes.Unavailable,
		"system:kube-scheduler": codes.Unavailable,
	} {
		failures := tlsFailures(t)
		_, err := scalerClient(t, shared.scalers[0], name).GetMetricSpec(t.Context(), refTo("default", "none"))
		assert.Equal(t, want, status.Code(err), "%s: %v", name, err)
		assert.Equal(t, want == codes.Unavailable, tlsFailures(t) > failures, name)
	}
}

// scalerClient returns a client of a replica, as KEDA is one, with a certificate for a name.
func scalerClient(t *testing.T, address, name string) externalscaler.ExternalScalerClient {
	t.Helper()
	config, err := shared.stack.Cluster.RESTConfigFor(name)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	require.NoError(t, err)
	authorities := x509.NewCertPool()
	require.True(t, authorities.AppendCertsFromPEM(shared.stack.Cluster.CA()))
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		RootCAs: authorities, Certificates: []tls.Certificate{pair}, ServerName: host, MinVersion: tls.VersionTLS12,
	})))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	return externalscaler.NewExternalScalerClient(conn)
}

// refTo returns what KEDA sends of a trigger of a ScaledObject.
func refTo(namespace, name string) *externalscaler.ScaledObjectRef {
	return &externalscaler.ScaledObjectRef{
		Namespace: namespace, Name: name, ScalerMetadata: map[string]string{"predictedMetric": name},
	}
}

func currentTLS(t *testing.T) (s tlsState) {
	for file, content := range map[string]*[]byte{shared.tls.ca: &s.authorities, shared.tls.cert: &s.server.Cert,
		shared.tls.key: &s.server.Key} {
		var err error
		*content, err = os.ReadFile(file)
		require.NoError(t, err)
	}
	secret := clientSecret(t)
	s.client = controlplane.KeyPair{Cert: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
	return s
}

func clientSecret(t *testing.T) *corev1.Secret {
	secret, err := shared.stack.Cluster.Client().CoreV1().Secrets(keda.Namespace).Get(shared, "foresail-keda-client",
		metav1.GetOptions{})
	require.NoError(t, err)
	return secret
}

func (s tlsState) apply(t *testing.T) {
	for file, content := range map[string][]byte{shared.tls.ca: s.authorities, shared.tls.cert: s.server.Cert,
		shared.tls.key: s.server.Key} {
		require.NoError(t, os.WriteFile(file, content, 0o600))
	}
	secret := clientSecret(t)
	secret.Data = map[string][]byte{"ca.crt": s.authorities, corev1.TLSCertKey: s.client.Cert,
		corev1.TLSPrivateKeyKey: s.client.Key}
	_, err := shared.stack.Cluster.Client().CoreV1().Secrets(keda.Namespace).Update(shared, secret,
		metav1.UpdateOptions{})
	require.NoError(t, err)
}

func tlsFailures(t *testing.T) (sum float64) {
	for _, replica := range shared.replicas {
		metrics, err := replica.Metrics(t.Context())
		require.NoError(t, err)
		sum += metrics.Sum("foresail_tls_failures_total")
	}
	return sum
}

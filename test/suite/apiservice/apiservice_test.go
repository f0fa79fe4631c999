package apiservice

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/cert"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/stack"
)

const (
	name   = "v1beta1.external.metrics.k8s.io"
	secret = "foresail-apiservice-ca"
	// validity has another authority follow every 30 s, and the replicas change their certificates
	// 7.5 s later.
	validity = 45 * time.Second
)

const anothers = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 200
  versionPriority: 200
  caBundle: %s
  service: {namespace: keda, name: keda-operator-metrics-apiserver, port: 443}
`

// The Service of the manifests has no pods here: it stands for this machine.
const machine = `
apiVersion: v1
kind: Service
metadata: {name: foresail, namespace: foresail-system}
spec: {type: ExternalName, externalName: localhost}
`

func services() dynamic.ResourceInterface {
	return shared.Cluster.Dynamic().Resource(apiregistrationv1.SchemeGroupVersion.WithResource("apiservices"))
}

func get(ctx context.Context) (*apiregistrationv1.APIService, error) {
	object, err := services().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var s apiregistrationv1.APIService
	return &s, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s)
}

// registered returns the APIService, nil if there is none.
func registered(t require.TestingT) *apiregistrationv1.APIService {
	s, err := get(context.Background())
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
	return s
}

func eventually(t *testing.T, what string, holds func(*assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, holds, patience, 100*time.Millisecond, what)
}

// read reads the metric through the API server until there is a value.
func read(t *testing.T) {
	t.Helper()
	client := reader(t)
	eventually(t, "a value through the API server", func(c *assert.CollectT) {
		_, err := stack.ReadMetric(client, app)
		require.NoError(c, err)
	})
}

// testRegistration goes through the life of an installation. The API can be had once in a cluster,
// so the steps follow each other.
func testRegistration(t *testing.T) {
	_, err := shared.Cluster.Apply(t.Context(), []byte(machine),
		fmt.Appendf(nil, anothers, encoded(shared.Cluster.CA())))
	require.NoError(t, err)
	f := startFront(t)
	flags := []string{"test:apiservice-ca-validity=" + validity.String()}
	first, second := start(t, "first", f, flags...), start(t, "second", f, flags...)
	f.lead(first.secure, second.secure)

	t.Run("another server keeps the API", func(t *testing.T) {
		eventually(t, "it is said who has it", func(c *assert.CollectT) {
			for _, r := range []*replica{first, second} {
				metrics := r.MustMetrics(t)
				value, ok := metrics.Gauge("foresail_apiservice_registered", "service",
					"keda/keda-operator-metrics-apiserver")
				assert.True(c, ok)
				assert.Zero(c, value)
			}
			events, err := shared.Cluster.Client().EventsV1().Events("default").List(t.Context(),
				metav1.ListOptions{FieldSelector: "reason=HeldByAnother"})
			require.NoError(c, err)
			require.NotEmpty(c, events.Items)
			assert.Equal(c, "APIService", events.Items[0].Regarding.Kind)
			assert.Contains(c, events.Items[0].Note, "keda/keda-operator-metrics-apiserver")
		})
		s := registered(t)
		require.NotNil(t, s)
		assert.Equal(t, "keda-operator-metrics-apiserver", s.Spec.Service.Name)
		assert.Equal(t, shared.Cluster.CA(), s.Spec.CABundle)
	})
	t.Run("the free API is taken", func(t *testing.T) {
		require.NoError(t, services().Delete(t.Context(), name, metav1.DeleteOptions{}))
		read(t)
		s := registered(t)
		assert.Equal(t, "foresail", s.Spec.Service.Name)
		assert.False(t, s.Spec.InsecureSkipTLSVerify)
		assert.NotEmpty(t, s.Spec.CABundle)
	})
	t.Run("no read fails while authorities follow each other", func(t *testing.T) { renew(t, first, second) })
	t.Run("another server in its place is not believed", func(t *testing.T) { impersonate(t, f, first, second) })
	t.Run("the API is given back", func(t *testing.T) { uninstall(t, first, second) })
	t.Run("the API is taken over by flag", func(t *testing.T) {
		require.NoError(t, foresail.Apply(t.Context(), shared.Cluster, "base/rbac-apiservice.yaml"))
		require.NoError(t, first.Stop())
		require.NoError(t, second.Stop())
		_, err := shared.Cluster.Apply(t.Context(), fmt.Appendf(nil, anothers, encoded(shared.Cluster.CA())))
		require.NoError(t, err)
		third := start(t, "third", f, "--apiservice=take-over")
		f.lead(third.secure)
		read(t)
		assert.Equal(t, "foresail", registered(t).Spec.Service.Name)
	})
}

func encoded(pem []byte) string { return base64.StdEncoding.EncodeToString(pem) }

// watchReads reads through the API server, and checks the certificate of each replica by the
// caBundle, ten times a second until it is called back for what has failed.
func watchReads(t *testing.T, replicas ...*replica) (end func() (reads []int, failures []string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var mu sync.Mutex
	reads := make([]int, 1+len(replicas)) // that have been verified, by who reads
	var failures []string
	every := func(i int, try func() (verified bool, err error)) {
		group.Go(func() {
			ticker := time.NewTicker(100 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
				verified, err := try()
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				if verified {
					reads[i]++
				}
				if err != nil {
					failures = append(failures, time.Now().Format(time.TimeOnly)+" "+err.Error())
				}
				mu.Unlock()
			}
		})
	}
	client := reader(t)
	every(0, func() (bool, error) {
		_, err := stack.ReadMetric(client, app)
		if answered(err) {
			return false, nil
		}
		return err == nil, err
	})
	for i, r := range replicas {
		every(1+i, func() (bool, error) {
			if s, err := get(ctx); err == nil {
				err = handshake(ctx, r, s.Spec.CABundle)
				return err == nil, err
			}
			return false, nil // the API server itself is busy
		})
	}
	return func() ([]int, []string) {
		cancel()
		group.Wait()
		return reads, failures
	}
}

// answered reports whether an error is what a replica that was reached says of its forecasts, such
// as that they are too old.
func answered(err error) bool {
	return apierrors.IsServiceUnavailable(err) && strings.Contains(err.Error(), app.Namespace+"/"+app.Name)
}

// handshake connects to a replica as the API server does.
func handshake(ctx context.Context, r *replica, bundle []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "foresail.foresail-system.svc"}}
	connection, err := dialer.DialContext(ctx, "tcp", r.secure)
	if err != nil {
		return err
	}
	return connection.Close()
}

// renew watches reads until the authority has been replaced several times, the last time because
// its Secret is deleted.
func renew(t *testing.T, replicas ...*replica) {
	read(t)
	end := watchReads(t, replicas...)
	seen := map[string]bool{}
	secrets := shared.Cluster.Client().CoreV1().Secrets(foresail.Namespace)
	observe := func(c *assert.CollectT) {
		s, err := secrets.Get(t.Context(), secret, metav1.GetOptions{})
		require.NoError(c, err)
		seen[string(s.Data["tls.crt"])] = true
	}
	begun := time.Now()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		observe(c)
		assert.Greater(c, len(seen), renewals-1)
	}, patience+renewals*validity, time.Second)
	require.NoError(t, secrets.Delete(t.Context(), secret, metav1.DeleteOptions{}))
	eventually(t, "another authority", func(c *assert.CollectT) {
		observe(c)
		assert.Greater(c, len(seen), renewals)
	})
	last := latest(t)
	eventually(t, "all replicas serve a certificate of it", func(c *assert.CollectT) {
		for _, r := range replicas {
			assert.NoError(c, handshake(t.Context(), r, last))
		}
	})
	reads, failures := end()
	assert.Empty(t, failures)
	assert.NotContains(t, reads, 0)
	t.Logf("%d reads and handshakes in %s, while %d authorities followed each other", reads,
		time.Since(begun).Round(time.Second), len(seen))
}

// latest returns the authority of the Secret.
func latest(t *testing.T) []byte {
	t.Helper()
	s, err := shared.Cluster.Client().CoreV1().Secrets(foresail.Namespace).Get(t.Context(), secret, metav1.GetOptions{})
	require.NoError(t, err)
	certs, err := cert.ParseCertsPEM(s.Data["tls.crt"])
	require.NoError(t, err)
	require.Len(t, certs, 1)
	return s.Data["tls.crt"]
}

// impersonate puts a server with a certificate of another authority, for the right name, where Foresail is.
func impersonate(t *testing.T, f *front, replicas ...*replica) {
	certFile, keyFile, err := shared.Cluster.ServingCertificate("foresail.foresail-system.svc")
	require.NoError(t, err)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // that it is rejected is the point
	server.StartTLS()
	defer server.Close()
	f.lead(server.Listener.Addr().String())
	for _, r := range replicas {
		require.NoError(t, r.Stop()) // and with them the connections that the API server has
	}
	eventually(t, "the API server rejects the certificate", func(c *assert.CollectT) {
		s := registered(c)
		require.NotNil(c, s)
		require.NotEmpty(c, s.Status.Conditions)
		assert.Contains(c, s.Status.Conditions[0].Message, "x509: certificate signed by unknown authority")
	})
	_, err = stack.ReadMetric(reader(t), app)
	require.Error(t, err)
	for _, r := range replicas {
		require.NoError(t, r.Restart())
	}
	f.lead(replicas[0].secure, replicas[1].secure)
	read(t)
}

// uninstall deletes what kubectl delete -k deletes of the registration, under running replicas.
func uninstall(t *testing.T, replicas ...*replica) {
	require.NoError(t, shared.Cluster.Client().RbacV1().ClusterRoles().Delete(t.Context(), "foresail-apiservice",
		metav1.DeleteOptions{}))
	eventually(t, "the garbage collector removes the APIService", func(c *assert.CollectT) {
		assert.Nil(c, registered(c))
	})
	eventually(t, "the replicas have tried to create it", func(c *assert.CollectT) {
		for _, r := range replicas {
			assert.NotZero(c, r.MustMetrics(t).Sum("foresail_apiservice_failures_total"))
		}
	})
	assert.Nil(t, registered(t))
	for _, r := range replicas {
		assert.True(t, strings.Contains(r.LogTail(), "foresail-apiservice"), r.LogTail())
	}
}

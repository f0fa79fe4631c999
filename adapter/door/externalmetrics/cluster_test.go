package externalmetrics

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Users of the test cluster. A bearer token is the name of its user.
const (
	hpaUser     = "system:serviceaccount:kube-system:horizontal-pod-autoscaler" // may list and watch external metrics
	monitorUser = "monitor"                                                     // may get /metrics
	visitorUser = "visitor"                                                     // may get what everyone may
	// may list external metrics but forbiddenMetric
	ownUser = "system:serviceaccount:foresail-system:foresail"
)

// forbiddenMetric is one that another adapter does not show to Foresail.
const forbiddenMetric = "forbidden"

// cluster answers the requests of our servers to a kube-apiserver: which user has a token, what a
// user may do, and which front proxies to trust.
type cluster struct {
	server *httptest.Server
	proxy  tls.Certificate // of the aggregator
	config corev1.ConfigMap
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	ca, proxy := newFrontProxy(t)
	c := &cluster{proxy: proxy, config: corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system",
			Name: "extension-apiserver-authentication", ResourceVersion: "1"},
		Data: map[string]string{
			"requestheader-client-ca-file":       ca,
			"requestheader-allowed-names":        `["front-proxy-client"]`,
			"requestheader-username-headers":     `["X-Remote-User"]`,
			"requestheader-group-headers":        `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", c.reviewToken)
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", c.reviewAccess)
	mux.HandleFunc("GET /api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", c.getConfig)
	mux.HandleFunc("GET /api/v1/namespaces/kube-system/configmaps", c.listConfig)
	c.server = httptest.NewTLSServer(mux)
	t.Cleanup(c.server.Close)
	return c
}

// kubeconfig writes a file that leads to the cluster.
func (c *cluster) kubeconfig(t testing.TB) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["test"] = &clientcmdapi.Cluster{Server: c.server.URL,
		CertificateAuthorityData: pemOf("CERTIFICATE", c.server.Certificate().Raw)}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	file.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*file, path))
	return path
}

func (c *cluster) reviewToken(w http.ResponseWriter, r *http.Request) {
	var review authenticationv1.TokenReview
	if !receive(w, r, &review) {
		return
	}
	if user := review.Spec.Token; slices.Contains([]string{hpaUser, monitorUser, visitorUser, ownUser}, user) {
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true,
			User: authenticationv1.UserInfo{Username: user}}
	}
	send(w, &review)
}

func (c *cluster) reviewAccess(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if !receive(w, r, &review) {
		return
	}
	review.Status.Allowed = allowed(review.Spec)
	send(w, &review)
}

func allowed(s authorizationv1.SubjectAccessReviewSpec) bool {
	if a := s.ResourceAttributes; a != nil {
		if a.Group == "custom.metrics.k8s.io" {
			return s.User == hpaUser && a.Verb == "get"
		}
		reads := a.Group == "external.metrics.k8s.io" && slices.Contains([]string{"list", "watch"}, a.Verb)
		return reads && (s.User == hpaUser || s.User == ownUser && a.Resource != forbiddenMetric)
	}
	path := s.NonResourceAttributes.Path
	if path == "/metrics" {
		return s.User == monitorUser
	}
	everyones := slices.ContainsFunc([]string{"/api", "/openapi", "/version"},
		func(p string) bool { return strings.HasPrefix(path, p) })
	return everyones && slices.Contains(s.Groups, "system:authenticated")
}

func (c *cluster) getConfig(w http.ResponseWriter, _ *http.Request) { send(w, &c.config) }

// listConfig answers lists, and watches with nothing until the client disconnects. It rejects streamed lists.
func (c *cluster) listConfig(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
	case query.Get("watch") != "":
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		send(w, &corev1.ConfigMapList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{c.config},
		})
	}
}

func receive(w http.ResponseWriter, r *http.Request, into runtime.Object) bool {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

func send(w http.ResponseWriter, object runtime.Object) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = json.NewEncoder(w).Encode(object) // fails if the client has disconnected
}

// newFrontProxy returns the PEM of an authority and a client certificate from it for the aggregator.
func newFrontProxy(t testing.TB) (string, tls.Certificate) {
	t.Helper()
	template := func(name string, serial int64) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		}
	}
	caKey, key := newKey(t), newKey(t)
	ca := template("front-proxy-ca", 1)
	ca.IsCA, ca.KeyUsage = true, x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	require.NoError(t, err)
	client := template("front-proxy-client", 2)
	client.KeyUsage, client.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, client, ca, key.Public(), caKey)
	require.NoError(t, err)
	return string(pemOf("CERTIFICATE", caDER)), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

package inspect

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/servertls"
)

const (
	// metricsPort is what the manifests call the port of --metrics-address.
	metricsPort = "metrics"
	// tokenSeconds is how long a token is valid: the shortest time that the API server takes.
	tokenSeconds = 600
	// renewAfter is how long a token is used.
	renewAfter = tokenSeconds * time.Second / 2
	// answerTimeout is how long a replica may take to tell what it knows.
	answerTimeout = 10 * time.Second
	// maxAnswer bounds what is read of it, in bytes: the extender tells some 400 of a node, twice.
	maxAnswer = 64 << 20
)

// replicaAccess is how a command reaches what replicas of Foresail serve at their --metrics-address.
type replicaAccess struct {
	account  string // the ServiceAccount that they answer
	server   string // "" asks the pods of Foresail
	caFile   string // of server; "" are the authorities of this host
	foresail string // the namespace of Foresail
}

func (a *replicaAccess) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.server, "server", "",
		"`URL` of the --metrics-address of the one replica to ask; empty asks all that there are, through the API server")
	fs.StringVar(&a.caFile, "server-ca-file", "",
		"`file` with the authorities of the certificate of --server; empty takes those of this host")
	fs.StringVar(&a.foresail, "foresail-namespace", "foresail-system", "`namespace` that Foresail runs in")
}

// anonymous returns whether the one replica to ask answers without a token. None is sent over HTTP.
func (a *replicaAccess) anonymous() bool { return strings.HasPrefix(a.server, "http://") }

func (a *replicaAccess) validate() error {
	if a.caFile != "" {
		if !strings.HasPrefix(a.server, "https://") {
			return cli.BadFlag("server-ca-file", fmt.Sprintf("%q", a.caFile),
				"left out unless --server has an https URL")
		}
		if err := servertls.CheckAuthorities(a.caFile); err != nil {
			return cli.BadFlag("server-ca-file", fmt.Sprintf("%q", a.caFile),
				fmt.Sprintf("a file with certificates in PEM: %v", err))
		}
	}
	if a.server == "" {
		return nil
	}
	if u, err := url.Parse(a.server); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return cli.BadFlag("server", fmt.Sprintf("%q", a.server),
			"an http or https URL, such as https://localhost:8443")
	}
	return nil
}

// token returns one that the replicas answer. The user's own would be of use to whoever receives it.
func (a *replicaAccess) token(ctx context.Context, client kubernetes.Interface) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	response, err := client.CoreV1().ServiceAccounts(a.foresail).CreateToken(ctx, a.account, request,
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("get a token of the ServiceAccount %s in namespace %s, for which the Role %s is: %w",
			a.account, a.foresail, a.account, err)
	}
	return response.Status.Token, nil
}

// heldToken is a token that is used for a while: replicas have the API server review each new one.
// It is safe for concurrent use.
type heldToken struct {
	mu      sync.Mutex // held while a token is asked for
	secret  string
	renewed time.Time
}

// get returns the token, "" for a replica that answers without one.
func (h *heldToken) get(ctx context.Context, access *replicaAccess, client kubernetes.Interface) (string, error) {
	if access.anonymous() {
		return "", nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.renewed) <= renewAfter {
		return h.secret, nil
	}
	secret, err := access.token(ctx, client)
	if err == nil {
		h.secret, h.renewed = secret, time.Now()
	}
	return secret, err
}

// forget has the next one be new.
func (h *heldToken) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.renewed = time.Time{}
}

// serverTransport connects to the one replica.
func (a *replicaAccess) serverTransport() (*http.Transport, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if a.anonymous() {
		return transport, nil
	}
	var err error
	transport.TLSClientConfig, err = rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: a.caFile}})
	return transport, err
}

// tunnelTransport connects to the end of a tunnel. The API server knows what pod is at the other:
// its certificate need not tell.
func tunnelTransport() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}

// replica is a pod of Foresail's, and the port that it tells of itself on.
type replica struct{ name, port string }

// portOf returns the number of a named port of a pod's containers, "" if there is none.
func portOf(pod *corev1.Pod, name string) string {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == name {
				return fmt.Sprint(port.ContainerPort)
			}
		}
	}
	return ""
}

// replicaAnswer is what a replica answers.
type replicaAnswer struct {
	code   int
	status string
	kind   string
	body   []byte
}

func (a *replicaAnswer) failure() error {
	return fmt.Errorf("%s: %s", a.status, strings.TrimSpace(string(a.body)))
}

// fetchFrom reads an answer.
func fetchFrom(ctx context.Context, transport *http.Transport, address, token string) (answer replicaAnswer,
	err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answer, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := transport.RoundTrip(request) // follows no redirect: the token is for this address
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return replicaAnswer{code: response.StatusCode, status: response.Status, kind: response.Header.Get("Content-Type"),
		body: body}, err
}

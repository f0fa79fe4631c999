package remotewrite

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/internal/localaddr"
)

// webConfig is the part of an exporter's configuration file that is needed here.
type webConfig struct {
	TLS struct {
		ClientAuth string   `json:"client_auth_type"`
		Names      []string `json:"client_allowed_sans"`
	} `json:"tls_server_config"`
	Users map[string]string `json:"basic_auth_users"`
}

// checkAccess checks the address and who may write.
func (o *Options) checkAccess() error {
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return &OptionError{"Address", o.Address, "a host and a port, such as :9201", err}
	}
	return o.checkSenders()
}

// checkSenders checks who may write.
func (o *Options) checkSenders() error {
	config, err := readWebConfig(o.WebConfigFile)
	if err != nil {
		return &OptionError{"WebConfigFile", o.WebConfigFile, "a web configuration as Prometheus exporters take it", err}
	}
	if o.BearerTokenFile != "" {
		if len(config.Users) > 0 {
			return &OptionError{"BearerTokenFile", o.BearerTokenFile, "empty where WebConfigFile has basic_auth_users", errors.New("a request can present one of the two")}
		}
		if _, err := readToken(o.BearerTokenFile); err != nil {
			return &OptionError{"BearerTokenFile", o.BearerTokenFile, "a file that holds a token", err}
		}
		return nil
	}
	if o.AllowAnonymous || len(config.Users) > 0 || config.authenticatesClients() || localaddr.Loopback(o.Address) {
		return nil
	}
	const accepted = "a loopback address, unless senders are authenticated (BearerTokenFile, or in WebConfigFile " +
		"basic_auth_users, or client certificates with client_allowed_sans) or nobody needs to be (AllowAnonymous)"
	return &OptionError{"Address", o.Address, accepted, errors.New("anybody who can reach it could write")}
}

func readWebConfig(path string) (c webConfig, err error) {
	if path == "" {
		return c, nil
	}
	if err := web.Validate(path); err != nil {
		return c, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	return c, yaml.Unmarshal(text, &c)
}

// authenticatesClients reports whether senders must present a verified certificate with an expected name. Without
// names each client of the authority could write, and the authority may sign for others.
func (c *webConfig) authenticatesClients() bool {
	return c.TLS.ClientAuth == "RequireAndVerifyClientCert" && len(c.TLS.Names) > 0
}

func readToken(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", errors.New("it is empty")
	}
	return token, nil
}

// access checks the web configuration again and again. The server reads it for every request, and without users it would
// admit anyone.
type access struct {
	options *Options

	mu      sync.Mutex
	checked time.Time
	err     error
}

// check returns a rejection while the configuration does not authenticate senders although it must.
func (a *access) check() *rejection {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.options.Now(); a.checked.IsZero() || now.Sub(a.checked) >= recheck {
		a.checked, a.err = now, a.options.checkSenders()
	}
	if a.err != nil {
		return &rejection{http.StatusServiceUnavailable, "the configuration of who may write is wrong: see the receiver's log"}
	}
	return nil
}

// recheck is how often the files are checked.
const recheck = time.Second

// tokenFile is a token that may be replaced while it is in use.
type tokenFile struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	checked time.Time
	info    os.FileInfo // of the version that was read
	digest  [sha256.Size]byte
	err     error
}

// check returns a rejection unless the request presents the token.
func (f *tokenFile) check(header http.Header, r *http.Request) *rejection {
	want, err := f.current()
	if err != nil {
		return &rejection{http.StatusServiceUnavailable, "the token to compare with cannot be read"}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(token)))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		header.Set("WWW-Authenticate", "Bearer")
		return &rejection{http.StatusUnauthorized, "a valid bearer token is required"}
	}
	return nil
}

// current returns the digest of the token, at most a recheck old.
func (f *tokenFile) current() ([sha256.Size]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if !f.checked.IsZero() && now.Sub(f.checked) < recheck {
		return f.digest, f.err
	}
	f.checked = now
	info, err := os.Stat(f.path)
	if err == nil && f.err == nil && f.unchanged(info) {
		return f.digest, nil
	}
	var token string
	if err == nil {
		token, err = readToken(f.path)
	}
	f.info, f.digest, f.err = info, sha256.Sum256([]byte(token)), err
	return f.digest, f.err
}

func (f *tokenFile) unchanged(info os.FileInfo) bool {
	return f.info != nil && os.SameFile(f.info, info) && f.info.Size() == info.Size() && f.info.ModTime().Equal(info.ModTime())
}

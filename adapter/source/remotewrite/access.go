package remotewrite

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
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

// OptionError reports an invalid option.
type OptionError struct {
	Option string // its name in Options
	Value  string
	Accept string // the values that would be accepted; it may name other options
	Err    error  // why the value is not
}

// Error implements error.
func (e *OptionError) Error() string {
	return fmt.Sprintf("%s: %q: must be %s: %v", e.Option, e.Value, e.Accept, e.Err)
}

// Unwrap returns the reason.
func (e *OptionError) Unwrap() error { return e.Err }

// senders are the options that decide who may write.
type senders struct {
	address         string
	webConfigFile   string
	bearerTokenFile string
	allowAnonymous  bool
}

// validate checks the address and who may write.
func (s *senders) validate() error {
	if _, _, err := net.SplitHostPort(s.address); err != nil {
		return &OptionError{"Address", s.address, "a host and a port, such as :9201", err}
	}
	return s.check()
}

// check checks who may write.
func (s *senders) check() error {
	config, err := readWebConfig(s.webConfigFile)
	if err != nil {
		return &OptionError{"WebConfigFile", s.webConfigFile, "a web configuration as Prometheus exporters take it",
			err}
	}
	if s.bearerTokenFile != "" {
		if len(config.Users) > 0 {
			return &OptionError{"BearerTokenFile", s.bearerTokenFile, "empty where WebConfigFile has basic_auth_users",
				errors.New("a request can present one of the two")}
		}
		if _, err := readToken(s.bearerTokenFile); err != nil {
			return &OptionError{"BearerTokenFile", s.bearerTokenFile, "a file that holds a token", err}
		}
		return nil
	}
	if s.allowAnonymous || len(config.Users) > 0 || config.authenticatesClients() || localaddr.Loopback(s.address) {
		return nil
	}
	const accepted = "a loopback address, unless senders are authenticated (BearerTokenFile, or in WebConfigFile " +
		"basic_auth_users, or client certificates with client_allowed_sans) or anonymous clients are allowed (AllowAnonymous)"
	return &OptionError{"Address", s.address, accepted, errors.New("anybody who can reach it could write")}
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

// recheck is the time between two checks of the files.
const recheck = time.Second

// access decides about each request whether its sender may write. The server itself checks the passwords and
// certificates of the web configuration.
type access struct {
	config *configFile // nil: there is no web configuration
	token  *tokenFile  // nil: none is required
}

func newAccess(s senders, now func() time.Time) *access {
	a := &access{}
	if s.webConfigFile != "" {
		a.config = &configFile{senders: s, now: now}
	}
	if s.bearerTokenFile != "" {
		a.token = &tokenFile{path: s.bearerTokenFile, now: now}
	}
	return a
}

// check returns a rejection unless the sender of a request may write. It sets what the header of the answer needs.
func (a *access) check(header http.Header, r *http.Request) *rejection {
	if a.config != nil {
		if why := a.config.check(); why != nil {
			return why
		}
	}
	if a.token != nil {
		return a.token.check(header, r)
	}
	return nil
}

// configFile checks the web configuration again and again. The server reads it for every request, and without
// users it would admit anyone.
type configFile struct {
	senders senders
	now     func() time.Time

	mu      sync.Mutex
	checked time.Time
	err     error
}

// check returns a rejection while the configuration does not authenticate senders although it must.
func (f *configFile) check() *rejection {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); f.checked.IsZero() || now.Sub(f.checked) >= recheck {
		f.checked, f.err = now, f.senders.check()
	}
	if f.err != nil {
		return &rejection{http.StatusServiceUnavailable,
			"the configuration of who may write is wrong: see the receiver's log"}
	}
	return nil
}

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
	expected, err := f.current()
	if err != nil {
		return &rejection{http.StatusServiceUnavailable, "the token to compare with cannot be read"}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(token)))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], expected[:]) != 1 {
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
	return f.info != nil && os.SameFile(f.info, info) &&
		f.info.Size() == info.Size() && f.info.ModTime().Equal(info.ModTime())
}

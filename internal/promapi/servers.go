package promapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/internal/localaddr"
)

// Servers are the servers that the operator permits, with their credentials. PredictedMetrics and
// WorkerPools name only an address. The zero value permits none. The nil Servers permits any,
// without credentials: it is for commands whose user names the server.
type Servers struct {
	// AllowUnlisted permits servers that are not listed as well, without credentials, unless their
	// address is local to the node: loopback, link-local, or the metadata of a cloud.
	AllowUnlisted bool

	listed map[string]*listed // by address
}

// listed is a server of the list.
type listed struct {
	client  config.HTTPClientConfig
	tenancy Tenancy
}

// Tenancy says which namespace a series belongs to. The operator decides that, not whoever writes a query.
type Tenancy struct {
	NamespaceLabel string // the label that names the namespace of a series
	Unlabelled     string // the namespace of series without the label; "" = nobody's
}

// DefaultNamespaceLabel is the label that names the namespace of a series unless the operator says otherwise.
const DefaultNamespaceLabel = "namespace"

// Validate returns what is wrong with t, by the names of two fields.
func (t *Tenancy) Validate(label, unlabelled string) error {
	if t.NamespaceLabel == model.MetricNameLabel || !model.UTF8Validation.IsValidLabelName(t.NamespaceLabel) {
		return fmt.Errorf("%s: %q: must be the name of a label of Prometheus, such as %s", label, t.NamespaceLabel,
			DefaultNamespaceLabel)
	}
	if t.Unlabelled != "" && len(validation.IsDNS1123Label(t.Unlabelled)) > 0 {
		return fmt.Errorf("%s: %q: must be the name of a namespace, or empty", unlabelled, t.Unlabelled)
	}
	return nil
}

// Namespace returns the namespace of a series with a value of the label, "" if it is nobody's.
func (t *Tenancy) Namespace(value string) string { return cmp.Or(value, t.Unlabelled) }

// serversFile is the format of the file.
type serversFile struct {
	Servers []serverFile `json:"servers"`
}

type serverFile struct {
	Address             string          `json:"address"`
	NamespaceLabel      *string         `json:"namespaceLabel"`
	UnlabelledNamespace string          `json:"unlabelledNamespace"`
	HTTPClientConfig    json.RawMessage `json:"httpClientConfig"`
}

// LoadServers reads a YAML file:
//
//	servers:
//	- address: https://prometheus.monitoring:9090
//	  namespaceLabel: namespace  # the label that names the namespace of a series
//	  unlabelledNamespace: ""    # the namespace of series without it; empty = nobody's
//	  httpClientConfig:          # as in Prometheus' own configuration, e.g. of a remote_read
//	    authorization:
//	      credentials_file: token
//	    tls_config:
//	      ca_file: ca.crt
//
// Paths in it are relative to the file. The files are read again when they change. The error names
// every wrong field.
func LoadServers(path string) (*Servers, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the file of Prometheus servers: %w", err)
	}
	var file serversFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w: must be servers, a list of address, namespaceLabel, unlabelledNamespace and httpClientConfig", path, err)
	}
	s := &Servers{}
	var problems []error
	for i := range file.Servers {
		if err := s.add(&file.Servers[i], filepath.Dir(path)); err != nil {
			problems = append(problems, fmt.Errorf("%s: servers[%d].%w", path, i, err))
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return s, nil
}

func (s *Servers) add(f *serverFile, directory string) error {
	address, err := ParseAddress(f.Address)
	if err != nil {
		return fmt.Errorf("address: %q: %w", Redact(f.Address), err)
	}
	if s.listed[address] != nil {
		return fmt.Errorf("address: %q: must be listed once", address)
	}
	c := &config.HTTPClientConfig{}
	*c = config.DefaultHTTPClientConfig
	if len(f.HTTPClientConfig) > 0 && string(f.HTTPClientConfig) != "null" {
		if c, err = config.LoadHTTPConfig(string(f.HTTPClientConfig)); err != nil {
			return fmt.Errorf("httpClientConfig: %w", err)
		}
	}
	c.SetDirectory(directory)
	if _, err := config.NewClientFromConfig(*c, connections); err != nil { // files that cannot be read, references to nowhere
		return fmt.Errorf("httpClientConfig: %w", err)
	}
	tenancy := Tenancy{NamespaceLabel: DefaultNamespaceLabel, Unlabelled: f.UnlabelledNamespace}
	if f.NamespaceLabel != nil {
		tenancy.NamespaceLabel = *f.NamespaceLabel
	}
	if err := tenancy.Validate("namespaceLabel", "unlabelledNamespace"); err != nil {
		return err
	}
	s.list(address, &listed{*c, tenancy})
	return nil
}

func (s *Servers) list(address string, server *listed) {
	if s.listed == nil {
		s.listed = map[string]*listed{}
	}
	s.listed[address] = server
}

// List adds the server at an address, in the form that [ParseAddress] returns, without credentials
// unless it is listed.
func (s *Servers) List(address string) {
	if s.listed[address] == nil {
		s.list(address, &listed{config.DefaultHTTPClientConfig, Tenancy{NamespaceLabel: DefaultNamespaceLabel}})
	}
}

// Permit returns an error if the server at an address, in the form that [ParseAddress] returns, may
// not be queried.
func (s *Servers) Permit(address string) error {
	if s == nil || s.AllowUnlisted || s.listed[address] != nil {
		return nil
	}
	if len(s.listed) == 0 {
		return fmt.Errorf("address: %q: the operator lists no servers", address)
	}
	return fmt.Errorf("address: %q: must be listed by the operator: %s", address,
		Some(slices.Sorted(maps.Keys(s.listed))))
}

// configOf returns the HTTP configuration for a server.
func (s *Servers) configOf(address string) config.HTTPClientConfig {
	if s != nil && s.listed[address] != nil {
		return s.listed[address].client
	}
	return config.DefaultHTTPClientConfig
}

// Tenancy returns which namespaces the series of a server belong to.
func (s *Servers) Tenancy(address string) Tenancy {
	if s != nil && s.listed[address] != nil {
		return s.listed[address].tenancy
	}
	return Tenancy{NamespaceLabel: DefaultNamespaceLabel}
}

// dialOption has connections to a server that the operator does not list refused where they would
// end on the node.
func (s *Servers) dialOption(address string) []config.HTTPClientOption {
	if s == nil || s.listed[address] != nil {
		return nil
	}
	return []config.HTTPClientOption{config.WithDialContextFunc((&net.Dialer{Control: refuseLocal}).DialContext)}
}

// refuseLocal is called with each address that a name was resolved to, right before the connection to it.
func refuseLocal(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if kind := localaddr.Kind(at.Addr()); kind != "" {
		return &localError{kind}
	}
	return nil
}

// localError is an unlisted server on the node. It does not tell the address that a name was resolved to.
type localError struct{ kind string }

func (e *localError) Error() string {
	return fmt.Sprintf("it has a %s address: must be listed by the operator", e.kind)
}

// AcceptedAddress says what an address must be.
const AcceptedAddress = "an http or https URL without user, query or fragment, such as http://prometheus.monitoring:9090"

var errAddress = errors.New("must be " + AcceptedAddress)

// ParseAddress returns the canonical form of an address. It rejects paths that could be read in two
// ways: an address must not pass for another one that has credentials.
func ParseAddress(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawPath != "" ||
		strings.ContainsAny(address, "?#") {
		return "", errAddress
	}
	u.Host = strings.ToLower(u.Host)
	u.Path = strings.TrimSuffix(u.Path, "/")
	if u.Path != "" && u.Path != path.Clean(u.Path) {
		return "", errAddress
	}
	return u.String(), nil
}

// Redact removes a possible password from an address that is rejected.
func Redact(address string) string {
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		return "…" + address[at:]
	}
	return address
}

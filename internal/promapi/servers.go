package promapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/common/config"
	"sigs.k8s.io/yaml"
)

// Servers are the servers that the operator permits, with their credentials. PredictedMetrics and WorkerPools name only an
// address. The nil Servers permits any, without credentials.
type Servers struct {
	allowUnlisted bool
	listed        map[string]*config.HTTPClientConfig // by address
}

// serversFile is the format of the file.
type serversFile struct {
	AllowUnlisted bool         `json:"allowUnlisted"`
	Servers       []serverFile `json:"servers"`
}

type serverFile struct {
	Address          string          `json:"address"`
	HTTPClientConfig json.RawMessage `json:"httpClientConfig"`
}

// LoadServers reads a YAML file:
//
//	allowUnlisted: false         # whether other servers may be queried, without credentials
//	servers:
//	- address: https://prometheus.monitoring:9090
//	  httpClientConfig:          # as in Prometheus' own configuration, e.g. of a remote_read
//	    authorization:
//	      credentials_file: token
//	    tls_config:
//	      ca_file: ca.crt
//
// Paths in it are relative to the file. The files are read again when they change. The error names every wrong field.
func LoadServers(path string) (*Servers, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the file of Prometheus servers: %w", err)
	}
	var file serversFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w: must be allowUnlisted and servers, a list of address and httpClientConfig", path, err)
	}
	s := &Servers{allowUnlisted: file.AllowUnlisted, listed: map[string]*config.HTTPClientConfig{}}
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
	s.listed[address] = c
	return nil
}

// Permit returns an error if the server at an address, in the form that [ParseAddress] returns, may not be queried.
func (s *Servers) Permit(address string) error {
	if s == nil || s.allowUnlisted || s.listed[address] != nil {
		return nil
	}
	if len(s.listed) == 0 {
		return fmt.Errorf("address: %q: the operator lists no servers", address)
	}
	return fmt.Errorf("address: %q: must be listed by the operator: %s", address, Some(slices.Sorted(maps.Keys(s.listed))))
}

// configOf returns the HTTP configuration for a server.
func (s *Servers) configOf(address string) config.HTTPClientConfig {
	if s != nil && s.listed[address] != nil {
		return *s.listed[address]
	}
	return config.DefaultHTTPClientConfig
}

// AcceptedAddress says what an address must be.
const AcceptedAddress = "an http or https URL without user, query or fragment, such as http://prometheus.monitoring:9090"

var errAddress = errors.New("must be " + AcceptedAddress)

// ParseAddress returns the canonical form of an address. It rejects paths that could be read in two ways: an address must
// not pass for another one that has credentials.
func ParseAddress(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawPath != "" ||
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

package promapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/prometheus/common/config"
	"sigs.k8s.io/yaml"
)

// Servers is what an operator says about the servers that may be asked: those who write PredictedMetrics and
// WorkerPools name an address and no more. The nil Servers permits any, without credentials.
type Servers struct {
	allowUnlisted bool
	listed        map[string]*config.HTTPClientConfig // by address
}

// serversFile is what a file of servers looks like.
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
//	allowUnlisted: false         # whether others than these may be asked, without credentials
//	servers:
//	- address: https://prometheus.monitoring:9090
//	  httpClientConfig:          # as in Prometheus' own configuration, e.g. of a remote_read
//	    authorization:
//	      credentials_file: token
//	    tls_config:
//	      ca_file: ca.crt
//
// Files are relative to the one that names them, and are read again as they change. The error names every field that
// is wrong.
func LoadServers(path string) (*Servers, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the file of Prometheus servers: %w", err)
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

// Permit returns an error if an address, normalized, may not be asked.
func (s *Servers) Permit(address string) error {
	if s == nil || s.allowUnlisted || s.listed[address] != nil {
		return nil
	}
	if len(s.listed) == 0 {
		return fmt.Errorf("address: %q: the operator lists no server that may be asked", address)
	}
	return fmt.Errorf("address: %q: must be one that the operator lists: %s", address, Some(slices.Sorted(maps.Keys(s.listed))))
}

// configOf returns how a server is to be asked.
func (s *Servers) configOf(address string) config.HTTPClientConfig {
	if s != nil && s.listed[address] != nil {
		return *s.listed[address]
	}
	return config.DefaultHTTPClientConfig
}

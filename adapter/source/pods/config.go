package pods

import (
	"errors"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/foresail/foresail/adapter/source"
)

// Config selects what is read of each pod.
type Config struct {
	Port        string // a number, or the name of a container port
	Path        string // of the endpoint, with a query if it takes one
	Metric      string
	Type        source.Type
	MatchLabels map[string]string // labels that the one series to read has; it may have others
	Interval    time.Duration
}

// endpointURL returns the URL of the endpoint on a host (with its port).
func (c *Config) endpointURL(host string) (*url.URL, error) {
	if !strings.HasPrefix(c.Path, "/") || strings.Contains(c.Path, "#") {
		return nil, errors.New("path does not start with / or has a fragment")
	}
	u, err := url.ParseRequestURI(c.Path)
	if err != nil {
		return nil, err
	}
	u.Scheme, u.Host = "http", host
	return u, nil
}

func (c *Config) equal(d *Config) bool {
	return c.Port == d.Port && c.Path == d.Path && c.Metric == d.Metric && c.Type == d.Type &&
		c.Interval == d.Interval && maps.Equal(c.MatchLabels, d.MatchLabels)
}

// Package promapi connects to the HTTP API of Prometheus servers: to those that the operator permits, with the credentials
// that the operator gives, and with bounds on what they answer.
package promapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
)

const (
	// connections names ours in the metrics of the library that dials.
	connections = "prometheus-source"
	// idleConnection is how long a connection is kept that is not used.
	idleConnection = time.Minute
	// maxRedirects is how often a server may send a query on to another path of its own.
	maxRedirects = 3
)

// Options of a Connector.
type Options struct {
	Servers   *Servers // that may be asked; nil = any, without credentials
	MaxSeries int      // that an answer may have
	MaxBytes  int64    // that an answer may have
	UserAgent string
	Transport http.RoundTripper // instead of one that the servers' configuration makes; nil = that
}

// Connector makes clients, whose large answers wait for each other.
type Connector struct {
	options Options
	large   chan struct{} // slots of large answers
}

// NewConnector returns a Connector.
func NewConnector(o Options) *Connector {
	return &Connector{options: o, large: make(chan struct{}, LargeAtOnce)}
}

// Large tells how many large answers are being read.
func (c *Connector) Large() int { return len(c.large) }

// Client asks one server.
type Client struct {
	v1.API
	http *http.Client
}

// CloseIdleConnections closes those that no query uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Connect prepares to ask the server at an address, which has to be one that [ParseAddress] returned. It does not ask
// whether that is permitted.
func (c *Connector) Connect(address string) (*Client, error) {
	client, err := config.NewClientFromConfig(c.options.Servers.configOf(address), connections,
		config.WithUserAgent(c.options.UserAgent), config.WithIdleConnTimeout(idleConnection))
	if err != nil {
		return nil, fmt.Errorf("address: %q: %w", address, err)
	}
	if c.options.Transport != nil {
		client.Transport = c.options.Transport
	}
	client.Transport = newLimiter(client.Transport, &c.options, c.large)
	if client.CheckRedirect == nil {
		client.CheckRedirect = checkRedirect
	}
	made, err := api.NewClient(api.Config{Address: address, Client: client})
	if err != nil {
		return nil, fmt.Errorf("address: %q: %w", address, err)
	}
	return &Client{API: v1.NewAPI(made), http: client}, nil
}

// checkRedirect follows redirects within the server that was to be asked only. Another one would be asked although
// nobody named it, and a subdomain, another port or plain HTTP would even be given the credentials.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return &redirectError{to: r.URL.Scheme + "://" + r.URL.Host}
	}
	if len(via) > maxRedirects {
		return errors.New("it redirects again and again")
	}
	return nil
}

type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return fmt.Sprintf("it redirects to %.100q, which is not followed: must be the server's own address", e.to)
}

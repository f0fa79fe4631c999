// Package promapi queries the HTTP API of Prometheus servers: of those that the operator permits,
// with the operator's credentials, and with limits on time and size of the answers.
package promapi

import (
	"cmp"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"

	"github.com/foresail/foresail/internal/share"
)

const (
	// connections is the name in the metrics of the library that dials.
	connections = "prometheus-source"
	// idleConnection is how long an unused connection is kept.
	idleConnection = time.Minute
	// maxRedirects is how often a server may redirect a query to another path of its own.
	maxRedirects = 3
)

// Options of a Connector.
type Options struct {
	Servers   *Servers // that may be queried
	MaxSeries int      // that an answer may have
	MaxBytes  int64    // that an answer may have
	MaxMemory int64    // that all answers take at once; 0 = 256 MiB
	UserAgent string
	Transport http.RoundTripper // instead of one that the servers' configuration makes; nil = that
}

// DefaultMaxMemory is the memory that all answers may take at once unless something else is said.
const DefaultMaxMemory = 256 << 20

// Connector makes clients. Their answers share one budget of memory.
type Connector struct {
	options Options
	budget  *share.Pool // of memory
}

// NewConnector returns a Connector.
func NewConnector(o Options) *Connector {
	return &Connector{options: o, budget: share.NewPool(cmp.Or(o.MaxMemory, DefaultMaxMemory), 0)}
}

// InUse returns the memory that answers take, by estimate.
func (c *Connector) InUse() int64 { return c.budget.InUse() }

// Client queries one server.
type Client struct {
	v1.API
	http *http.Client
}

// CloseIdleConnections closes the connections that no query uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Connect returns a client of the server at an address, in the form that [ParseAddress] returns. It
// does not check whether the server is permitted.
func (c *Connector) Connect(address string) (*Client, error) {
	servers := c.options.Servers
	client, err := config.NewClientFromConfig(servers.configOf(address), connections,
		append(servers.dialOption(address),
			config.WithUserAgent(c.options.UserAgent), config.WithIdleConnTimeout(idleConnection))...)
	if err != nil {
		return nil, fmt.Errorf("address: %q: %w", address, err)
	}
	if c.options.Transport != nil {
		client.Transport = c.options.Transport
	}
	client.Transport = newLimiter(client.Transport, &c.options, c.budget)
	if client.CheckRedirect == nil {
		client.CheckRedirect = checkRedirect
	}
	made, err := api.NewClient(api.Config{Address: address, Client: client})
	if err != nil {
		return nil, fmt.Errorf("address: %q: %w", address, err)
	}
	return &Client{API: v1.NewAPI(made), http: client}, nil
}

// checkRedirect follows redirects within the same server only. No list of the operator permits another one, and a
// subdomain, another port or plain HTTP would even receive the credentials.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return &redirectError{to: r.URL.Scheme + "://" + r.URL.Host}
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	}
	return nil
}

type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return fmt.Sprintf("it redirects to %.100q, which is not followed: must stay at the server's own address", e.to)
}

// Clients keeps one client for each server, for as long as the process runs. It is safe for concurrent use.
type Clients struct {
	connector *Connector
	mu        sync.Mutex
	made      map[string]v1.API // by address
}

// NewClients returns Clients that have connected to nothing yet.
func NewClients(o Options) *Clients {
	return &Clients{connector: NewConnector(o), made: map[string]v1.API{}}
}

// API returns the API of the server at an address. The error says what is wrong with the address,
// or that it is not permitted.
func (c *Clients) API(address string) (v1.API, error) {
	parsed, err := ParseAddress(address)
	if err != nil {
		return nil, fmt.Errorf("address: %q: %w", Redact(address), err)
	}
	if err := c.connector.options.Servers.Permit(parsed); err != nil {
		return nil, err
	}
	c.mu.Lock()
	made := c.made[parsed]
	c.mu.Unlock()
	if made != nil {
		return made, nil
	}
	connected, err := c.connector.Connect(parsed) // reads files, for which the lock is not held
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.made[parsed]; made != nil {
		return made, nil // of another caller
	}
	c.made[parsed] = connected
	return connected, nil
}

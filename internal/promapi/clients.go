package promapi

import (
	"fmt"
	"sync"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// Clients are those of servers that are asked for as long as the process runs, one for each. It is safe for concurrent use.
type Clients struct {
	connector *Connector
	mu        sync.Mutex
	made      map[string]v1.API // by address
}

// NewClients returns Clients that have connected to nothing yet.
func NewClients(o Options) *Clients {
	return &Clients{connector: NewConnector(o), made: map[string]v1.API{}}
}

// API returns the API of the server at an address. The error says what is wrong with the address, or that it may not be
// asked.
func (c *Clients) API(address string) (v1.API, error) {
	parsed, err := ParseAddress(address)
	if err != nil {
		return nil, fmt.Errorf("address: %q: %w", Redact(address), err)
	}
	if err := c.connector.options.Servers.Permit(parsed); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if api := c.made[parsed]; api != nil {
		return api, nil
	}
	api, err := c.connector.Connect(parsed)
	if err != nil {
		return nil, err
	}
	c.made[parsed] = api
	return api, nil
}

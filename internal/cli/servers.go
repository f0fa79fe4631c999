package cli

import (
	"fmt"
	"math"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/foresail/foresail/internal/promapi"
)

// Limits of the answers that commands read of the past.
const (
	maxPastSeries = 10_000   // of an answer: a pool has some dozens
	maxPastBytes  = 64 << 20 // of an answer: ten thousand samples of each
)

// LoadServers reads the file of --prometheus-config-file; "" lists no server.
func LoadServers(file string) (*promapi.Servers, error) {
	if file == "" {
		return &promapi.Servers{}, nil
	}
	servers, err := promapi.LoadServers(file)
	if err != nil {
		return nil, Unusable(fmt.Errorf("--prometheus-config-file: %w", err))
	}
	return servers, nil
}

// PastAPI returns the server at the URL of --prometheus, for commands that read the past. The file has its credentials;
// "" has none.
func PastAPI(url, file string) (v1.API, error) {
	address, err := promapi.ParseAddress(url)
	if err != nil {
		return nil, BadFlag("prometheus", fmt.Sprintf("%q", promapi.Redact(url)), promapi.AcceptedAddress)
	}
	servers, err := LoadServers(file)
	if err != nil {
		return nil, err
	}
	if file == "" {
		servers.List(address)
	}
	api, err := promapi.NewClients(promapi.Options{
		Servers: servers, UserAgent: UserAgent(),
		MaxSeries: maxPastSeries, MaxBytes: maxPastBytes, MaxMemory: math.MaxInt64,
	}).API(url)
	if err != nil {
		return nil, Unusable(fmt.Errorf("--prometheus: %w", err))
	}
	return api, nil
}

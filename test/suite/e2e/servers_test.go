package e2e

import (
	"context"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/env/ports"
	"github.com/foresail/foresail/test/env/stack"
)

// serverList is the Prometheus servers that adapters may query. They start after the adapters,
// which read the list when they start, so their ports are taken before.
type serverList struct {
	ports map[string]int // by the name of the server
	file  string
}

func newServerList(names ...string) (serverList, error) {
	list := serverList{ports: map[string]int{}, file: filepath.Join(shared.Cluster.Dir(), "servers.yaml")}
	var servers []map[string]string
	for _, name := range names {
		port, err := ports.Take()
		if err != nil {
			return list, err
		}
		list.ports[name] = port
		servers = append(servers, map[string]string{"address": "http://" + ports.Loopback(port)})
	}
	content, err := yaml.Marshal(map[string]any{"servers": servers})
	if err != nil {
		return list, err
	}
	return list, os.WriteFile(list.file, content, 0o600)
}

// runAdapter starts an adapter that may query the listed servers.
func runAdapter(ctx context.Context, name string, flags ...string) (*stack.Adapter, error) {
	return shared.StartAdapter(ctx, name, append(flags, "--prometheus-config-file="+servers.file)...)
}

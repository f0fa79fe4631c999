package serve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/foresail/foresail/internal/cli"
)

const (
	anonymousFlag        = "allow-anonymous"
	anonymousMetrics     = "metrics"
	anonymousKEDA        = "keda"
	anonymousExtender    = "extender"
	anonymousRemoteWrite = "remote-write"

	acceptAnonymous = anonymousMetrics + ", " + anonymousKEDA + ", " + anonymousExtender + ", " + anonymousRemoteWrite +
		", or several with commas in between"
)

// anonymousOptions are the servers that answer clients whose identity is not known.
type anonymousOptions struct{ servers []string }

func (o *anonymousOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.servers, anonymousFlag, nil, "Servers that answer anyone who can reach their address: "+acceptAnonymous+". "+
		"Those of metrics learn the load of every namespace, and which pod is on which node. For loopback, and for addresses that a NetworkPolicy closes to all other clients.")
}

func (o *anonymousOptions) allows(server string) bool {
	return o != nil && slices.Contains(o.servers, server)
}

func (o *anonymousOptions) validate() error {
	known := []string{anonymousMetrics, anonymousKEDA, anonymousExtender, anonymousRemoteWrite}
	for _, server := range o.servers {
		if !slices.Contains(known, server) {
			return cli.BadFlag(anonymousFlag, fmt.Sprintf("%q", strings.Join(o.servers, ",")), acceptAnonymous)
		}
	}
	return nil
}

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
type anonymousOptions struct{ servers serverList }

func (o *anonymousOptions) addFlags(fs *pflag.FlagSet) {
	fs.Var(&o.servers, anonymousFlag, "Servers that answer anyone who can reach their address: "+acceptAnonymous+". "+
		"Clients of metrics learn the load of every namespace, and which pod is on which node. For loopback, and "+
		"for addresses that a NetworkPolicy closes to all other clients. Words add up; an empty one takes "+
		"back those before it.")
}

// serverList is the value of a flag whose words add up, until an empty one takes them back.
type serverList []string

// Set implements pflag.Value.
func (l *serverList) Set(text string) error {
	*l = append(*l, strings.Split(text, ",")...)
	if text == "" {
		*l = nil
	}
	return nil
}

// String implements pflag.Value.
func (l *serverList) String() string { return strings.Join(*l, ",") }

// Type implements pflag.Value.
func (l *serverList) Type() string { return "strings" }

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

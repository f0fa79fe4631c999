package serve

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

func TestAllSourcesOfTheAPIAreRegistered(t *testing.T) {
	var names []string
	for _, r := range registeredSources(nil) {
		names = append(names, r.Name)
	}
	assert.ElementsMatch(t, v1alpha1.SourceNames(), names)
}

func TestFlagsOfSources(t *testing.T) {
	empty, servers := clitest.File(t, "token", ""), clitest.File(t, "servers.yaml",
		"servers: [{address: 'http://prometheus:9090'}]")
	for _, c := range []struct {
		args string
		want string // "" for nothing wrong
	}{
		{"", ""},
		{"--remote-write-address 127.0.0.1:9201", ""},
		{"--remote-write-address :9201 --allow-anonymous remote-write", ""},
		{"--remote-write-address 9201", `--remote-write-address: "9201": must be a host and a port, such as :9201: `},
		{"--remote-write-address :9201",
			`--remote-write-address: ":9201": must be a loopback address, unless senders are authenticated (--remote-write-bearer-token-file, ` +
				`or in --remote-write-web-config-file basic_auth_users, or client certificates with client_allowed_sans) or anonymous clients are allowed (--allow-anonymous=remote-write): anybody who can reach it could write`},
		{"--remote-write-address :9201 --remote-write-web-config-file /nonexistent",
			`--remote-write-web-config-file: "/nonexistent": must be a web configuration as Prometheus exporters take it: `},
		{"--remote-write-address :9201 --remote-write-bearer-token-file " + empty,
			`--remote-write-bearer-token-file: "` +
				empty + `": must be a file that holds a token: it is empty`},
		{"--remote-write-bearer-token-file " + empty, `--remote-write-bearer-token-file: "` + empty +
			`": must be left out while --remote-write-address is empty`},
		{"--scrape-concurrency 1", `--scrape-concurrency: 1: must be at least 2`},
		{"--remote-write-namespace-label k8s_ns",
			`--remote-write-namespace-label: "k8s_ns": must be left out while --remote-write-address is empty`},
		{"--remote-write-address 127.0.0.1:9201 --remote-write-namespace-label k8s_ns --remote-write-unlabelled-namespace shop", ""},
		{"--remote-write-address 127.0.0.1:9201 --remote-write-namespace-label=",
			`--remote-write-namespace-label: "": must be the name of a label`},
		{"--remote-write-address 127.0.0.1:9201 --remote-write-unlabelled-namespace Shop",
			`--remote-write-unlabelled-namespace: "Shop": must be the name of a namespace, or empty`},
		{"--prometheus http://localhost:9090 --prometheus-config-file " + servers,
			`--prometheus: "http://localhost:9090": must be one that --prometheus-config-file permits: address: "http://localhost:9090": must be listed by the operator: "http://prometheus:9090"`},
		{"--prometheus http://localhost:9090 --prometheus-allow-unlisted --prometheus-config-file " + servers, ""},
		{"--prometheus-max-memory 0", `--prometheus-max-memory: 0: must be at least 1048576`},
	} {
		o := sourceOptions{anonymous: &anonymousOptions{}}
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.addFlags(fs)
		o.anonymous.addFlags(fs)
		require.NoError(t, fs.Parse(strings.Fields(c.args)), c.args)
		err := o.validate()
		if c.want == "" {
			assert.NoError(t, err, c.args)
			continue
		}
		require.ErrorContains(t, err, c.want)
		assert.ErrorAs(t, err, new(cli.UsageError), c.args)
	}
}

// Without a word of the operator no server may be queried but the one that he names.
func TestServersThatMayBeQueried(t *testing.T) {
	servers := clitest.File(t, "servers.yaml", "servers: [{address: 'http://prometheus:9090'}]")
	for args, permitted := range map[string][]string{
		"":                                    nil,
		"--prometheus http://own":             {"http://own"},
		"--prometheus-config-file " + servers: {"http://prometheus:9090"},
		"--prometheus-allow-unlisted":         {"http://own", "http://prometheus:9090", "http://other"},
		"--prometheus-allow-unlisted --prometheus-config-file " + servers: {"http://own", "http://prometheus:9090",
			"http://other"},
	} {
		var o sourceOptions
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.addFlags(fs)
		require.NoError(t, fs.Parse(strings.Fields(args)), args)
		require.NoError(t, o.validate(), args)
		require.NoError(t, o.complete(), args)
		var got []string
		for _, address := range []string{"http://own", "http://prometheus:9090", "http://other"} {
			if o.prometheus.api().Servers.Permit(address) == nil {
				got = append(got, address)
			}
		}
		assert.Equal(t, permitted, got, args)
	}
}

package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/foresail/foresail/internal/cli"
)

func TestFlagsOfKEDA(t *testing.T) {
	served, authenticated := certDir(t, "foresail-keda"), certDir(t, "foresail-keda", "ca.crt")
	pair, both := "--keda-cert-dir "+served, "--keda-cert-dir "+authenticated
	emptyCA := certDir(t, "foresail-keda", "ca.crt")
	require.NoError(t, os.WriteFile(filepath.Join(emptyCA, "ca.crt"), nil, 0o600))
	for _, c := range []struct{ args, want string }{ // "" for nothing wrong
		{"", ""},
		{"--keda-address 0", ""},
		{"--keda-address 127.0.0.1:9600", ""},
		{"--keda-address :9600 --allow-anonymous keda", ""},
		{"--keda-address :9600 --allow-anonymous keda " + pair, ""},
		{"--keda-address :9600 " + both, ""},
		{"--keda-address :9600 --keda-client-names a,b " + both, ""},
		{"--keda-address :9600 --keda-client-names a --allow-anonymous keda",
			`--keda-client-names: "[a]": must be left out unless --keda-cert-dir has ca.crt`},
		{"--keda-address :9600 --keda-client-names= " + both,
			`--keda-client-names: "": must be the names of KEDA's certificate, such as keda-operator: without a name no client is accepted`},
		{"--keda-address :9600 --keda-client-names *.keda " + both,
			`--keda-client-names: "*.keda": must be the names of KEDA's certificate, such as keda-operator: "*.keda" is not a name`},
		{"--keda-address 9600", `--keda-address: "9600": must be a host and a port, such as :9600: `},
		{"--keda-address 127.0.0.1:grpc",
			`--keda-address: "127.0.0.1:grpc": must be a host and a port, such as :9600: the port "grpc" is not a number`},
		{"--keda-address :9600", `--keda-address: ":9600": must be a loopback address, unless KEDA is authenticated (ca.crt in --keda-cert-dir) or anonymous clients are allowed ` +
			`(--allow-anonymous=keda): anybody who can reach it could read the load of every namespace`},
		{"--keda-address 10.0.0.1:9600 " + pair, `--keda-address: "10.0.0.1:9600": must be a loopback address`},
		{"--keda-address :9600 --keda-cert-dir " + emptyCA,
			`--keda-cert-dir: "` + emptyCA + `/ca.crt": must be a file with certificates in PEM: there is none in it`},
		{"--keda-address 127.0.0.1:9600 --keda-cert-dir /nonexistent",
			`--keda-cert-dir: "/nonexistent": must be a folder with a certificate and its key in PEM, tls.crt and tls.key: `},
		{pair, `--keda-cert-dir: "` + served + `": must be left out while --keda-address is empty`},
		{"--keda-address 0 " + pair,
			`--keda-cert-dir: "` + served + `": must be left out while --keda-address is empty`},
	} {
		o := kedaDoor{anonymous: &anonymousOptions{}}
		var groups cliflag.NamedFlagSets
		o.addFlags(&groups)
		o.anonymous.addFlags(groups.FlagSet(groupKEDA))
		require.NoError(t, groups.FlagSet(groupKEDA).Parse(strings.Fields(c.args)), c.args)
		err := o.validate()
		if c.want == "" {
			assert.NoError(t, err, c.args)
			continue
		}
		require.ErrorContains(t, err, c.want)
		assert.ErrorAs(t, err, new(cli.UsageError), c.args)
	}
}

func TestKEDAIsAnsweredByTheAdapter(t *testing.T) {
	for args, want := range map[string]string{
		"--enable nodepool --keda-address 127.0.0.1:9600":      `--keda-address: "127.0.0.1:9600": must be left out unless --enable has adapter`,
		"--keda-address 127.0.0.1:9600 --apiservice=none":      "",
		"--enable nodepool --keda-address 0 --apiservice=none": "",
	} {
		o := newRunOptions()
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		groups := o.flagGroups()
		for _, name := range groups.Order {
			fs.AddFlagSet(groups.FlagSets[name])
		}
		require.NoError(t, fs.Parse(append(strings.Fields(args), "--leader-elect=false")), args)
		err := o.validate()
		if want == "" {
			assert.NoError(t, err, args)
			continue
		}
		assert.ErrorContains(t, err, want)
	}
}

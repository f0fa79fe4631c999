package serve

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

func TestFlagsOfKEDA(t *testing.T) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("foresail-keda", nil, nil)
	require.NoError(t, err)
	certFile, keyFile, empty := clitest.File(t, "tls.crt", string(certificate)), clitest.File(t, "tls.key", string(key)), clitest.File(t, "empty", "")
	pair := "--keda-tls-cert-file " + certFile + " --keda-tls-private-key-file " + keyFile
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct{ args, want string }{ // "" for nothing wrong
		{"", ""},
		{"--keda-address 0", ""},
		{"--keda-address 127.0.0.1:9600", ""},
		{"--keda-address :9600 --keda-allow-anonymous", ""},
		{"--keda-address :9600 --keda-allow-anonymous " + pair, ""},
		{"--keda-address :9600 --keda-client-ca-file " + certFile + " " + pair, ""},
		{"--keda-address :9600 --keda-client-names a,b --keda-client-ca-file " + certFile + " " + pair, ""},
		{"--keda-address :9600 --keda-client-names a --keda-allow-anonymous",
			`--keda-client-names: "[a]": must be left out unless --keda-client-ca-file is given`},
		{"--keda-address :9600 --keda-client-names= --keda-client-ca-file " + certFile + " " + pair,
			`--keda-client-names: "": must be the names of KEDA's certificate, such as keda-operator: without a name no client is accepted`},
		{"--keda-address :9600 --keda-client-names *.keda --keda-client-ca-file " + certFile + " " + pair,
			`--keda-client-names: "*.keda": must be the names of KEDA's certificate, such as keda-operator: "*.keda" is not a name`},
		{"--keda-address 9600", `--keda-address: "9600": must be a host and a port, such as :9600: `},
		{"--keda-address 127.0.0.1:grpc", `--keda-address: "127.0.0.1:grpc": must be a host and a port, such as :9600: the port "grpc" is not a number`},
		{"--keda-address :9600", `--keda-address: ":9600": must be a loopback address, unless KEDA is authenticated (--keda-client-ca-file) or nobody needs to be ` +
			`(--keda-allow-anonymous): anybody who can reach it could read the load of every namespace`},
		{"--keda-address 10.0.0.1:9600 " + pair, `--keda-address: "10.0.0.1:9600": must be a loopback address`},
		{"--keda-address :9600 --keda-client-ca-file " + certFile, `--keda-client-ca-file: "` + certFile + `": must be left out unless --keda-tls-cert-file is given`},
		{"--keda-address :9600 --keda-client-ca-file " + empty + " " + pair, `--keda-client-ca-file: "` + empty + `": must be a file with certificates in PEM: there is none in it`},
		{"--keda-address :9600 --keda-client-ca-file " + missing + " " + pair, `--keda-client-ca-file: "` + missing + `": must be a file with certificates in PEM: `},
		{"--keda-address 127.0.0.1:9600 --keda-tls-cert-file " + certFile, `--keda-tls-private-key-file: "": must be given together with --keda-tls-cert-file`},
		{"--keda-address 127.0.0.1:9600 --keda-tls-private-key-file " + keyFile, `--keda-tls-cert-file: "": must be given together with --keda-tls-private-key-file`},
		{"--keda-address 127.0.0.1:9600 --keda-tls-cert-file " + keyFile + " --keda-tls-private-key-file " + certFile,
			`--keda-tls-cert-file: "` + keyFile + `": must be a certificate in PEM, the key of which is in --keda-tls-private-key-file: `},
		{"--keda-allow-anonymous", `--keda-allow-anonymous: "true": must be left out while --keda-address is empty`},
		{"--keda-address 0 --keda-tls-cert-file " + certFile, `--keda-tls-cert-file: "` + certFile + `": must be left out while --keda-address is empty`},
	} {
		var o kedaDoor
		var groups cliflag.NamedFlagSets
		o.addFlags(&groups)
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
		"--enable nodepool --keda-address 127.0.0.1:9600":       `--keda-address: "127.0.0.1:9600": must be left out unless --enable has adapter`,
		"--enable nodepool --keda-allow-anonymous":              `--keda-allow-anonymous: "true": must be left out unless --enable has adapter`,
		"--keda-address 127.0.0.1:9600 --apiservice=false":      "",
		"--enable nodepool --keda-address 0 --apiservice=false": "",
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

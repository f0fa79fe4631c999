package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/foresail/foresail/adapter/scheduler/extender"
	"github.com/foresail/foresail/adapter/scheduler/nodeusage"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/internal/objectcache"
)

func TestFlagsOfTheExtender(t *testing.T) {
	served, authenticated, emptyCA := certDir(t, "localhost"), certDir(t, "localhost", "ca.crt"),
		certDir(t, "localhost", "ca.crt")
	require.NoError(t, os.WriteFile(filepath.Join(emptyCA, "ca.crt"), nil, 0o600))
	const prometheus = "http://prometheus:9090"
	for _, c := range []struct {
		args, prometheus string
		want             []string // nothing wrong if there is none
	}{
		{args: ""},
		{args: "--extender-address 127.0.0.1:9443 --extender-memory-limit 0 --extender-cpu-limit 1 --extender-cert-dir " +
			served},
		{args: "--extender-address :9443 --extender-client-names a --extender-cert-dir " + authenticated},
		{args: "--extender-cpu-query rate(cpu[1m]) --extender-memory-query last_over_time(memory[1m])",
			prometheus: prometheus},
		{args: "", prometheus: prometheus},
		{args: "--extender-cpu-query= --extender-memory-query=", prometheus: prometheus},
		{args: "--extender-address 9443",
			want: []string{`--extender-address: "9443": must be a host and a port, such as :9443 or 127.0.0.1:9443: `}},
		{args: "--extender-address :0", want: []string{`--extender-address: ":0": must be a host and a port`}},
		{args: "--extender-address :https", want: []string{`the port "https" is not a number from 1 to 65535`}},
		{args: "--extender-cert-dir /nonexistent",
			want: []string{
				`--extender-cert-dir: "/nonexistent": must be a folder with a certificate and its key in PEM, tls.crt and tls.key: `}},
		{args: "--extender-cert-dir " + emptyCA,
			want: []string{`--extender-cert-dir: "` + emptyCA +
				`/ca.crt": must be a file with certificates in PEM: there is none in it`}},
		{args: "--extender-client-names= --extender-cert-dir " + authenticated, want: []string{
			`--extender-client-names: "": must be the names of schedulers' certificates, such as foresail-scheduler: without a name`,
		}},
		{args: "--extender-client-names a --extender-cert-dir " + served, want: []string{
			`--extender-client-names: "[a]": must be left out unless --extender-cert-dir has ca.crt`,
		}},
		{args: "--extender-pack-target 0",
			want: []string{`--extender-pack-target: "0": must be a share above 0 and below 1`}},
		{args: "--extender-pack-target NaN",
			want: []string{`--extender-pack-target: "NaN": must be a share above 0 and below 1`}},
		{args: "--extender-memory-limit 95",
			want: []string{`--extender-memory-limit: "95": must be a share from 0, which is no limit, to 1`}},
		{args: "--extender-cpu-limit -1",
			want: []string{`--extender-cpu-limit: "-1": must be a share from 0, which is no limit, to 1`}},
		{args: "--extender-cpu-query cpu --extender-memory-query memory", want: []string{
			`--extender-cpu-query: "cpu": must be left out unless --prometheus says whom to ask`,
			`--extender-memory-query: "memory": must be left out unless --prometheus says whom to ask`,
		}},
		{args: "--extender-memory-query x[1m]", prometheus: prometheus,
			want: []string{`--extender-cpu-query: "": must be a query in PromQL, such as 'sum by (node) (rate(`}},
		{args: "--extender-cpu-query x[1m]", prometheus: prometheus,
			want: []string{`--extender-memory-query: "": must be a query in PromQL, such as 'sum by (node) (last_over_time(`}},
		{args: "--extender-cpu-query x[1m] --extender-memory-query memory", prometheus: prometheus,
			want: []string{
				`--extender-memory-query: "memory": must be a query with a range, such as 'sum by (node) (last_over_time(`}},
	} {
		var o extenderOptions
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.addFlags(fs)
		require.NoError(t, fs.Parse(strings.Fields(c.args)), c.args)
		err := o.validate(true, c.prometheus)
		if len(c.want) == 0 {
			assert.NoError(t, err, c.args)
			continue
		}
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
		assert.ErrorAs(t, err, new(cli.UsageError), c.args)
	}
	code, _, stderr := foresail(t, "", "run", "--leader-elect=false", "--extender-pack-target", "0.5")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, `--extender-pack-target: "0.5": must be left out unless --enable has extender`)
}

// An address needs client certificates, unless it is on loopback or the operator allows anonymous clients.
func TestAnonymousSchedulersNeedAnOption(t *testing.T) {
	authenticated := certDir(t, "localhost", "ca.crt")
	for address, strangers := range map[string]bool{
		"127.0.0.1:9443": false, "127.1.2.3:1": false, "[::1]:9443": false, "localhost:9443": false,
		":9443": true, "0.0.0.0:9443": true, "[::]:9443": true, "10.0.0.1:9443": true, "foresail.example:9443": true,
	} {
		var o extenderOptions
		o.addFlags(pflag.NewFlagSet("run", pflag.ContinueOnError))
		o.address = address
		if strangers {
			want := fmt.Sprintf(
				"--extender-address: %q: must be a loopback address, unless schedulers are authenticated (ca.crt in --extender-cert-dir) or anonymous clients are allowed (--allow-anonymous=extender)", address)
			assert.ErrorContains(t, o.validate(true, ""), want)
		} else {
			assert.NoError(t, o.validate(true, ""), address)
		}
		o.anonymous = &anonymousOptions{servers: []string{"extender"}}
		assert.NoError(t, o.validate(true, ""), address)
		o.anonymous, o.certDir = nil, authenticated
		assert.NoError(t, o.validateClients(), address)
	}
	code, _, stderr := foresail(t, "", "run", "--enable=extender", "--extender-address=:9443")
	assert.Equal(t, cli.ExitUsage, code, "it does not start")
	assert.Contains(t, stderr, "--allow-anonymous=extender")
	code, _, stderr = foresail(t, "", "run", "--enable=extender", "--extender-address=:9443",
		"--allow-anonymous=extender", "--allow-anonymous=")
	assert.Equal(t, cli.ExitUsage, code, "an empty word takes back those before it")
	assert.Contains(t, stderr, "--allow-anonymous=extender")
	code, _, stderr = foresail(t, "", "run", "--leader-elect=false", "--allow-anonymous=extender,others")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, `--allow-anonymous: "extender,others": must be metrics, keda, extender, remote-write`)
}

// A field that no flag sets is no flag's fault.
func TestErrorsOfTheExtenderInFlags(t *testing.T) {
	var o extenderOptions
	require.NoError(t, o.inFlags(nil))
	lost := errors.New("lost")
	require.Equal(t, lost, o.inFlags(lost))
	rules := extender.DefaultRules()
	rules.Target, rules.StaleAfter = 2, 0
	err := o.inFlags(rules.Validate())
	require.ErrorContains(t, err, `--extender-pack-target: "2": must be a share above 0 and below 1`)
	require.ErrorContains(t, err, "StaleAfter is")
	require.NotContains(t, err.Error(), "--:")
	err = o.inFlags(&extender.OptionError{Field: "Address", Value: "x", Accept: "one to listen on", Err: lost})
	require.EqualError(t, err, `--extender-address: "x": must be one to listen on: lost`)

	var fields []string
	for _, of := range []reflect.Type{reflect.TypeFor[extender.ServerOptions](), reflect.TypeFor[extender.Rules]()} {
		for field := range of.Fields() {
			fields = append(fields, field.Name)
		}
	}
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.addFlags(flags)
	for field, flag := range flagsOfFields() {
		assert.Contains(t, fields, field)
		assert.NotNil(t, flags.Lookup(flag), flag)
	}
}

// A Node that is created again under a name has not used what the earlier one did, whichever source has the readings.
func TestNodesOfOneNameAreToldApart(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "spot", UID: "uid-1"}})
	feed := objectcache.Nodes(client)
	names := newNodeNames(feed)
	var o extenderOptions
	o.addFlags(pflag.NewFlagSet("run", pflag.ContinueOnError))
	options := o.loadOptions(&nodeusage.MetricsAPI{}, names)
	require.Nil(t, options.Nodes(), "it is not known yet")
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { feed.Run(ctx) })
	t.Cleanup(func() {
		end()
		running.Wait()
	})
	clitest.Eventually(t, func() bool { nodes := options.Nodes(); return len(nodes) == 1 && nodes[0].UID == "uid-1" })
}

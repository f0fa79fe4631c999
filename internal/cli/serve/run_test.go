package serve

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

// parsedRun returns the options of run for some flags.
func parsedRun(t *testing.T, args ...string) *runOptions {
	t.Helper()
	o := newRunOptions()
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	groups := o.flagGroups()
	for _, name := range groups.Order {
		flags.AddFlagSet(groups.FlagSets[name])
	}
	require.NoError(t, flags.Parse(args))
	return o
}

func TestValidateReportsEverythingAtOnce(t *testing.T) {
	err := parsedRun(t, "--enable=adapter,nodepol", "--kube-api-qps=0", "--scrape-concurrency=1",
		"--prometheus-max-memory=1", "--extender-pack-target=0.5", "--http-address=8080", "--metrics-address=:0", "--metrics-cert-dir=/nonexistent", "--prices=prices.yaml", "--logging-format=xml").validate()
	for _, want := range []string{
		`--enable: "nodepol": must be adapter, nodepool, extender, or several with commas in between`,
		"--kube-api-qps: 0: must be above 0",
		"--scrape-concurrency: 1: must be at least 2",
		"--prometheus-max-memory: 1: must be at least 1048576",
		`--extender-pack-target: "0.5": must be left out unless --enable has extender`,
		`--prices: "prices.yaml": must be left out unless --enable has nodepool`,
		`--foresail-namespace: "": must be the namespace that this runs in`,
		`--http-address: "8080": must be a host and a port, such as :8080 or 127.0.0.1:8080, or 0: `,
		`--metrics-address: ":0": must be a host and a port, such as :8443 or 127.0.0.1:8443, or 0: `,
		`--metrics-cert-dir: "/nonexistent": must be a folder with a certificate and its key in PEM`,
		"xml",
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestValidateChangesNothing(t *testing.T) {
	o := parsedRun(t, "--enable=adapter, nodepool", "--namespaces= shop", "--leader-elect=false", "--apiservice=none",
		"--prometheus=http://prometheus:9090",
		"--prometheus-config-file="+clitest.File(t, "servers.yaml", "servers: [{address: 'http://prometheus:9090'}]"),
		"--notify-webhook-url-file="+clitest.File(t, "webhook", "https://hooks.example.com/1\n"),
		"--nodepool-cost-report=24h", "--prices="+clitest.File(t, "prices.yaml", "t3.small: {onDemand: 0.02}"))
	require.NoError(t, o.validate())
	assert.Equal(t, []string{"adapter", " nodepool"}, o.enable)
	assert.Equal(t, []string{" shop"}, o.adapter.namespaces)
	assert.Nil(t, o.sources.prometheus.limits.Servers)
	assert.Nil(t, o.nodePool.webhook)
	assert.Nil(t, o.nodePool.costReports.prices)

	require.NoError(t, o.complete())
	assert.Equal(t, []string{"adapter", "nodepool"}, o.enable)
	assert.Equal(t, []string{"shop"}, o.adapter.namespaces)
	assert.NotNil(t, o.sources.prometheus.limits.Servers)
	assert.Equal(t, "https://hooks.example.com/1", o.nodePool.webhook.URL)
	assert.NotEmpty(t, o.nodePool.costReports.prices)
}

func TestHelpOfRunHasFlagsInGroups(t *testing.T) {
	code, out, _ := foresail(t, "", "run", "--help")
	assert.Equal(t, cli.ExitDone, code)
	for _, group := range []string{"General flags:", "Cluster flags:", "API service flags:", "Forwarding flags:",
		"Samples flags:", "Worker pools flags:", "Scheduler extender flags:", "Secure serving flags:", "Logging flags:"} {
		assert.Contains(t, out, group)
	}
	assert.Contains(t, out, "Examples:")
}

func TestDashboardFlagNeedsWhatServesIt(t *testing.T) {
	given := []string{"--leader-elect=false", "--apiservice=none", "--dashboard"}
	assert.NoError(t, parsedRun(t, given...).validate())
	for _, c := range []struct{ arg, want string }{
		{"--enable=nodepool", "--dashboard: true: must be left out unless --enable has adapter"},
		{"--metrics-address=0", "--dashboard: true: must be left out with --metrics-address=0, which serves nothing"},
	} {
		err := parsedRun(t, append(given, c.arg)...).validate()
		assert.ErrorContains(t, err, c.want)
		assert.True(t, errors.As(err, new(cli.UsageError)))
	}
}

func TestRunRefusesUnusableArguments(t *testing.T) {
	dear := clitest.File(t, "prices.yaml", "t3.small: {spot: -1}")
	for args, want := range map[string]string{
		"run --enable nodes":                      `--enable: "nodes": must be adapter, nodepool, extender, or several with commas in between`,
		"run --enable=":                           `--enable: "": must be adapter`,
		"run --notify-webhook-url-file /nowhere":  `--notify-webhook-url-file: "/nowhere": must be left out unless --enable has nodepool`,
		"run --enable nodepool --prometheus x:90": `--prometheus: "x:90": must be an http or https URL`,
		"run --nodepool-cost-report weekly":       `--nodepool-cost-report: "weekly": must be a duration`,
		"run --nodepool-cost-report 168h":         "--nodepool-cost-report: 168h0m0s: must be left out unless --enable has nodepool",
		"run --enable nodepool --nodepool-cost-report 168h": "--nodepool-cost-report: 168h0m0s: must be left out unless --notify-webhook-url-file is given, which says where reports go\n" +
			"--nodepool-cost-report: 168h0m0s: must be left out unless --prometheus is given",
		"run --enable nodepool --nodepool-cost-report 10m": "--nodepool-cost-report: 10m0s: must be 0, or a duration of at least 1h",
		"run --enable nodepool --prices " + dear:           "--prices " + dear + ": t3.small.spot: -1",
		"run --prices " + dear:                             "must be left out unless --enable has nodepool",
		"run --nodepool-cost-report 168h --prices " + dear: "--prices " + dear + ": t3.small.spot: -1",
	} {
		code, out, stderr := foresail(t, "", strings.Fields(args)...)
		assert.Equal(t, cli.ExitUsage, code, args)
		assert.Contains(t, stderr, want, args)
		assert.Empty(t, out, args)
	}
}

package main

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	err := parsedRun(t, "--enable=adapter,nodepol", "--kube-api-qps=0", "--kube-api-burst=0", "--scrape-concurrency=1",
		"--prometheus-timeout=0s", "--extender-warm-up=1m", "--http-address=8080", "--metrics-address=:0", "--metrics-tls-cert-file=tls.crt", "--nodepool-cost-prices=prices.yaml", "--logging-format=xml").validate()
	for _, want := range []string{
		`--enable: "nodepol": must be adapter, nodepool, extender, or several with commas in between`,
		"--kube-api-qps: 0: must be above 0",
		"--kube-api-burst: 0: must be at least 1",
		"--scrape-concurrency: 1: must be at least 2",
		"--prometheus-timeout: 0s: must be above 0s",
		`--extender-warm-up: "1m0s": must be left out unless --enable has extender`,
		`--nodepool-cost-prices: "prices.yaml": must be left out unless --enable has nodepool`,
		`--leader-election-namespace: "": must be the namespace that this runs in`,
		`--http-address: "8080": must be a host and a port, such as :8080 or 127.0.0.1:8080, or 0: `,
		`--metrics-address: ":0": must be a host and a port, such as :8443 or 127.0.0.1:8443, or 0: `,
		`--metrics-tls-private-key-file: "": must be given together with --metrics-tls-cert-file, or neither`,
		`--apiservice-namespace: "": must be the namespace that this runs in`,
		"xml",
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestValidateChangesNothing(t *testing.T) {
	o := parsedRun(t, "--enable=adapter, nodepool", "--namespaces= shop", "--leader-elect=false", "--apiservice=false", "--prometheus-url=http://prometheus:9090",
		"--prometheus-config-file="+file(t, "servers.yaml", "servers: [{address: 'http://prometheus:9090'}]"),
		"--notify-webhook-url-file="+file(t, "webhook", "https://hooks.example.com/1\n"),
		"--nodepool-cost-report=24h", "--nodepool-cost-prices="+file(t, "prices.yaml", "t3.small: {onDemand: 0.02}"))
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
	assert.Equal(t, exitDone, code)
	for _, group := range []string{"General flags:", "Cluster flags:", "API service flags:", "Forwarding flags:", "Samples flags:", "Worker pools flags:", "Scheduler extender flags:", "Secure serving flags:", "Logging flags:"} {
		assert.Contains(t, out, group)
	}
	assert.Contains(t, out, "Examples:")
}

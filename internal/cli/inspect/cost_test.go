package inspect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/nodepool/cost"
	"github.com/foresail/foresail/nodepool/cost/costtest"
)

func TestCostTellsWhatAServerKnows(t *testing.T) {
	server := costtest.Serve(t)
	prices := clitest.File(t, "prices.yaml", "t3.small: {onDemand: 1, spot: 0.25}\n")
	code, out, stderr := foresail(t, "", "cost", "workerpool", "workers", "--prometheus", server.URL+"/", "--prices",
		prices)
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, out, "known         168.0 h of 168.0 h\n")
	assert.Contains(t, out, "worker hours  672.0; 504.0 desired")
	assert.Contains(t, out, "It cost 294.00 USD, and would have cost 220.50 USD at the desired count; 73.50 USD were for idle workers. On-Demand alone would have been 672.00 USD.")

	code, out, stderr = foresail(t, "", "cost", "wp", "workers", "--prometheus", server.URL, "--since", "84d", "-o",
		"json")
	require.Equal(t, cli.ExitDone, code, stderr)
	var r cost.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.Equal(t, 12*7*24.0, r.KnownHours)
	assert.Equal(t, 0.75, *r.SpotShare)
	assert.Nil(t, r.Cost)
	assert.Equal(t, []string{"t3.small OnDemand", "t3.small Spot"}, r.MissingPrices)
	assert.Contains(t, out, `"costUSD": null`)

	code, _, stderr = foresail(t, "", "cost", "workerpool", "wrokers", "--prometheus", server.URL)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, server.URL+`: it has nothing of the pool "wrokers" between `)
	assert.Contains(t, stderr, ", but others: builders, workers")
	server.Close()
	code, _, stderr = foresail(t, "", "cost", "workerpool", "workers", "--prometheus", server.URL)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "connection refused")
}

func TestCostRefusesUnusableArguments(t *testing.T) {
	dear := clitest.File(t, "prices.yaml", "t3.small: {spot: -1}")
	none := clitest.File(t, "servers.yaml", "servers: []")
	const ask = "cost workerpool workers --prometheus http://localhost:9090 "
	for args, want := range map[string]string{
		"cost workerpol x":                          `unknown command "workerpol": must be one of workerpool`,
		"cost workerpool":                           "the name of a WorkerPool is missing: foresail cost workerpool NAME",
		"cost workerpool workers":                   "--prometheus: missing: must be an http or https URL",
		"cost workerpool workers --prometheus x:90": `--prometheus: "x:90": must be an http or https URL`,
		ask + "--since 0":                           "--since: 0s: must be from 1h to 12w",
		ask + "--since 85d":                         "--since: 85d: must be from 1h to 12w",
		ask + "--since long":                        `--since: "long"`,
		ask + "-o yaml":                             `--output: "yaml": must be table or json`,
		ask + "--prices /nowhere":                   "--prices: open /nowhere: no such file or directory: must be a YAML file of US dollars an hour",
		ask + "--prices " + dear:                    "--prices " + dear + ": t3.small.spot: -1: must be a number of US dollars, 0 or more",
		ask + "--prometheus-config-file /nowhere":   "--prometheus-config-file: read the file of Prometheus servers",
		ask + "--prometheus-config-file " + none:    `--prometheus: address: "http://localhost:9090": the operator lists no servers`,
		"cost workerpool workers --prometheus http://user:secret@localhost": "…@localhost",
	} {
		code, out, stderr := foresail(t, "", strings.Fields(args)...)
		assert.Equal(t, cli.ExitUsage, code, args)
		assert.Contains(t, stderr, want, args)
		assert.NotContains(t, stderr, "secret", args)
		assert.Empty(t, out, args)
	}
}

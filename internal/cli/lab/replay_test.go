package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
)

const oneSpec = `
apiVersion: foresail.dev/v1alpha1
kind: PredictedMetric
metadata: {name: checkout-elu, namespace: shop}
spec: {threshold: 700m, maxReplicas: 20, holt: {}}
`

const oneRecording = `{"run":3500}
{"instance":"a","start":-60000}
{"instance":"a","t":0,"v":1.5}
{"instance":"a","t":1000,"v":1.5}
{"instance":"a","t":2000,"v":1.5}
{"instance":"a","t":3000,"v":1.5}
{"run":-60000}
`

const oneResult = `{"now":-60000,"error":"no tick of the window has a value: at least two samples of one active instance are needed"}
{"now":3500,"tick":3000,"level":1.5,"trend":0,"horizonMs":45000,"forecast":1.5,"damped":1.5,"contributionWeight":1,"active":1,"loadNow":1.5,"loadPredicted":1.5,"direction":"Steady","desired":3,"action":"ScaleUp"}
`

func TestReplayReadsFromAFileOrStdin(t *testing.T) {
	spec := clitest.File(t, "spec.yaml", oneSpec)
	for _, input := range [][]string{{}, {"--input", "-"}, {"--input", clitest.File(t, "events.jsonl", oneRecording)}} {
		code, out, stderr := foresail(t, oneRecording, append([]string{"replay", "--filename", spec}, input...)...)
		assert.Equal(t, cli.ExitDone, code)
		assert.Equal(t, oneResult, out)
		assert.Empty(t, stderr)
	}
}

func TestReplayWritesATable(t *testing.T) {
	code, out, _ := foresail(t, oneRecording, "replay", "--filename", clitest.File(t, "spec.yaml", oneSpec), "--output",
		"table")
	assert.Equal(t, cli.ExitDone, code)
	lines := strings.Split(out, "\n")
	require.Len(t, lines, 4)
	assert.Equal(t, []string{"3500", "3000", "1.5000", "0.0000", "45s", "1.5000", "1.5000", "1.00", "1", "1", "1.5000",
		"1.5000", "Steady", "3", "ScaleUp", "AboveThreshold"}, strings.Fields(lines[2]))
	assert.Len(t, strings.Fields(lines[0]), 16)
}

func TestReplayAppliesCooldownsIfAsked(t *testing.T) {
	spec := clitest.File(t, "spec.yaml", oneSpec)
	twice := oneRecording + `{"run":3600}`
	_, out, _ := foresail(t, twice, "replay", "--filename", spec)
	assert.Equal(t, 2, strings.Count(out, `"desired":3,"action":"ScaleUp"`))
	_, out, _ = foresail(t, twice, "replay", "--filename", spec, "--cooldowns")
	assert.Equal(t, 1, strings.Count(out, `"desired":3,"action":"ScaleUp"`))
	assert.Equal(t, 1, strings.Count(out, `"desired":1,"action":"Hold"`))
}

func TestABadLineEndsWithOneAndKeepsTheResults(t *testing.T) {
	code, out, stderr := foresail(t, oneRecording+"\n{\"run\":soon}\n{\"run\":1}\n", "replay", "--filename",
		clitest.File(t, "spec.yaml", oneSpec))
	assert.Equal(t, cli.ExitFailed, code)
	assert.Equal(t, oneResult, out)
	assert.Equal(t, "foresail replay: line 9: not a JSON object: invalid character 's' looking for beginning of value\n", stderr)
}

func TestReplayOfNothingSaysSo(t *testing.T) {
	code, out, stderr := foresail(t, "", "replay", "--filename", clitest.File(t, "spec.yaml", oneSpec))
	assert.Equal(t, cli.ExitDone, code)
	assert.Empty(t, out)
	assert.Contains(t, stderr, `nothing to evaluate: the input has no line like {"run":15000}`)
}

func TestAnInterruptedReplayEndsWithOne(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	silent, end := io.Pipe()
	defer func() { assert.NoError(t, end.Close()) }()
	var out, stderr bytes.Buffer
	code := cli.Execute(ctx, newRoot(time.Now), []string{"replay", "--filename", clitest.File(t, "spec.yaml", oneSpec)},
		silent, &out, &stderr)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Equal(t, "foresail replay: interrupted\n", stderr.String())
}

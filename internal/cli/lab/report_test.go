package lab

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/cli"
	"github.com/foresail/foresail/internal/cli/clitest"
	"github.com/foresail/foresail/internal/docpages"
	"github.com/foresail/foresail/internal/lab/play/evaluation"
	"github.com/foresail/foresail/internal/lab/play/evaluation/evaluationtest"
	"github.com/foresail/foresail/test/env/controlplane"
)

const exampleMetric = "../../../manifests/examples/predictedmetric.yaml"

var reportedAt = time.Date(2026, 5, 8, 9, 0, 0, 0, time.UTC)

// recorded is what two replicas of Foresail have exposed of the PredictedMetric of the examples,
// which ran for some hours but for a pause.
func recorded(namespace string, hours time.Duration, pause time.Duration) (all []evaluationtest.Series) {
	var one, other []evaluationtest.Scrape
	for _, s := range evaluationtest.Ran(reportedAt.Add(-hours), hours) {
		if ago := reportedAt.Sub(s.At); ago > 3*time.Hour && ago <= 3*time.Hour+pause {
			continue
		}
		one = append(one, s)
		other = append(other, evaluationtest.Scrape{At: s.At.Add(4 * time.Second), Values: s.Values})
	}
	all = evaluationtest.Exposed(namespace, "checkout", "foresail-7d4b9f6c8-x2kzl", one)
	return append(all, evaluationtest.Exposed(namespace, "checkout", "foresail-7d4b9f6c8-9zw8h", other)...)
}

func atReport() time.Time { return reportedAt }

// TestReportIsGenerated compares the report in the page with that of a fixture, or writes it (`make docs`).
func TestReportIsGenerated(t *testing.T) {
	url := evaluationtest.Serve(t, recorded("shop", 26*time.Hour, 40*time.Minute))
	code, stdout, stderr := foresailAt(t, atReport, "", "report", "-f", exampleMetric, "-n", "shop", "--prometheus",
		url, "--since", "1d", "--seeds", "1")
	require.Equal(t, cli.ExitDone, code, stderr)
	docpages.Verify(t, "../../../docs/report.md", "report", "```\n"+strings.TrimRight(stdout, "\n")+"\n```")
}

func TestReportOfACluster(t *testing.T) {
	cluster := controlplane.BorrowFor(t)
	objects := clitest.WithDefinitions(t, cluster, "../../../manifests")
	url := evaluationtest.Serve(t, recorded("default", 2*time.Hour, 0))
	report := func(args ...string) (int, string, string) {
		return foresailAt(t, atReport, "",
			append([]string{"report", "--kubeconfig", cluster.Kubeconfig(), "--prometheus", url, "--since", "2h",
				"--seeds", "1"}, args...)...)
	}
	code, _, stderr := report("-A")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "there is no PredictedMetric in the cluster")

	example, err := os.ReadFile(exampleMetric)
	require.NoError(t, err)
	for _, name := range []string{"checkout", "unrecorded"} {
		pm := &v1alpha1.PredictedMetric{}
		require.NoError(t, yaml.UnmarshalStrict(example, pm))
		pm.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: name}
		require.NoError(t, objects.Create(t.Context(), pm))
	}
	code, _, stderr = report("-n", "elsewhere")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr, "there is no PredictedMetric in namespace elsewhere: -n names another one, -A takes all")
	code, _, stderr = report("chekcout", "-n", "default")
	assert.Equal(t, cli.ExitFailed, code)
	assert.Contains(t, stderr,
		`there is no PredictedMetric "chekcout" in namespace default: must be one of checkout, unrecorded`)

	out := filepath.Join(t.TempDir(), "made")
	code, stdout, stderr := report("checkout", "-n", "default", "--out", out)
	require.Equal(t, cli.ExitDone, code, stderr)
	assert.Contains(t, stdout, "PredictedMetric default/checkout (Deployment checkout), threshold 700m\n")
	assert.Contains(t, stdout, "In the last 2 hours too few pods were ready for ")
	assert.Contains(t, stdout, "\nThe report is in "+filepath.Join(out, "report.html"))
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "<svg")
	assert.NotContains(t, string(page), "http://127", "it needs nothing else")

	code, stdout, stderr = report("-A", "-o", "json")
	assert.Equal(t, cli.ExitFailed, code, "one of two cannot be reported on")
	assert.Contains(t, stderr,
		`PredictedMetric default/unrecorded: `+url+`: it has no metrics of the PredictedMetric default/unrecorded between `)
	assert.Contains(t, stderr, `but of others: "default/checkout"`)
	var reports []evaluation.Result
	require.NoError(t, json.Unmarshal([]byte(stdout), &reports))
	require.Len(t, reports, 1)
	assert.Equal(t, 2, reports[0].Replicas)
	assert.InDelta(t, 2, reports[0].Spans[0].KnownHours, 0.02)
	assert.Len(t, reports[0].Spans[0].Rows, 5)

	interrupted, interrupt := context.WithCancelCause(t.Context())
	interrupt(errors.New("interrupted"))
	command := &cobra.Command{}
	command.SetContext(interrupted)
	api, err := cli.PastAPI(url, "")
	require.NoError(t, err)
	o := reportOptions{prometheus: url, seeds: 1}
	_, err = o.evaluate(command, make([]v1alpha1.PredictedMetric, 2), api,
		evaluation.Spans{Names: []string{"1h"}, Lengths: []time.Duration{time.Hour}}, atReport())
	assert.ErrorContains(t, err, "0 of 2 PredictedMetrics are reported on: interrupted")
}

func TestReportRejectsUnusableArguments(t *testing.T) {
	only := "report -f " + exampleMetric + " --prometheus http://localhost:9090 "
	for args, want := range map[string]string{
		"report checkout":                                       "--prometheus: missing: must be an http or https URL",
		"report checkout --prometheus x:90":                     `--prometheus: "x:90": must be an http or https URL`,
		"report a b --prometheus http://x":                      `unexpected argument "b": foresail report takes one name`,
		"report a -A --prometheus http://x":                     `unexpected argument "a": foresail report takes flags only`,
		only + "-A":                                             "must be left out where --all-namespaces is given",
		only + "a":                                              `unexpected argument "a"`,
		only + "--since 30m":                                    `--since: "30m": must be spans of time from 1h to 31d, such as 1d,7d`,
		only + "--since 1d,soon":                                `--since: "soon": must be spans of time`,
		only + "--since 1d,24h":                                 `--since: "24h" twice: must be different spans`,
		only + "--since 1h,2h,3h,4h,5h":                         "--since: 5: must be from 1 to 4 spans of time",
		only + "--seeds 0":                                      "--seeds: 0: must be from 1 to 1000",
		only + "--capacity 0":                                   "--capacity: 0: must be from 1 to 1e+09",
		only + "--pod-price 0.04":                               "--minute-price: missing: must be an amount of 0 or more and its currency, such as 0.04USD",
		only + "-o yaml":                                        `--output: "yaml": must be table or json or html`,
		only + "--prometheus-config-file /nowhere":              "--prometheus-config-file: read the file of Prometheus servers",
		only + "--out " + exampleMetric + "/x":                  "not a directory: must be a directory that can be written to",
		"report -f /nowhere --prometheus http://x":              "--filename /nowhere: open /nowhere: no such file or directory",
		"report -f " + exampleMetric + " --prometheus http://x": "--namespace: missing: must be given where the file has no metadata.namespace",
		"report x --prometheus http://x --kubeconfig /nowhere":  `--kubeconfig: "/nowhere": must be a readable kubeconfig file`,
	} {
		code, stdout, stderr := foresail(t, "", strings.Fields(args)...)
		assert.Equal(t, cli.ExitUsage, code, args)
		assert.Contains(t, stderr, want, args)
		assert.Empty(t, stdout, args)
	}
}

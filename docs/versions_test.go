package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/internal/docpages"
)

// counterparts are the projects of which tests run the oldest supported release and the newest.
// Two files in ../test require these releases.
var counterparts = []struct{ name, use, module, oldest, newest string }{
	{
		"[Kubernetes](#kubernetes-versions)", "everything",
		"k8s.io/kubernetes", "env/controlplane/oldest/go.mod", "env/controlplane/components/go.mod",
	}, {
		"[KEDA](keda.md#versions)", "ScaledObjects",
		"github.com/kedacore/keda/v2", "suite/keda/oldest/go.mod", "suite/keda/components/go.mod",
	}, {
		"Prometheus, server or agent", "the source `prometheus`, and remote write, version 1 and 2",
		"github.com/prometheus/prometheus", "env/monitoring/oldest/go.mod", "env/monitoring/components/go.mod",
	}, {
		"OpenTelemetry Collector", "OTLP",
		"go.opentelemetry.io/collector/otelcol", "suite/otel/collector/oldest.mod", "suite/otel/collector/go.mod",
	},
}

// TestSupportedVersionsAreGenerated compares the table of versions with what tests run, or writes it (`make docs`).
func TestSupportedVersionsAreGenerated(t *testing.T) {
	rows := [][]string{{"", "for", "oldest", "newest tested"}}
	for _, c := range counterparts {
		rows = append(rows, []string{c.name, c.use, minorOf(t, c.oldest, c.module), minorOf(t, c.newest, c.module)})
	}
	assert.Contains(t, pages(t)["keda.md"], "\n- **KEDA "+rows[2][2]+"**: all of this:")
	docpages.Verify(t, "operating.md", "versions", docpages.Table(rows))
}

// minorOf returns the minor release of a module that a file requires, such as 2.17.
func minorOf(t *testing.T, file, module string) string {
	t.Helper()
	text, err := os.ReadFile("../test/" + file)
	require.NoError(t, err)
	requirement := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` v(\d+)\.(\d+)\.`)
	found := requirement.FindSubmatch(text)
	require.NotNil(t, found, "%s requires no %s", file, module)
	major, minor := string(found[1]), string(found[2])
	if module == "github.com/prometheus/prometheus" { // its module v0.54.1 is release 2.54.1, v0.313.5 is 3.13.5
		number, err := strconv.Atoi(minor)
		require.NoError(t, err)
		return fmt.Sprintf("%d.%d", max(2, number/100), number%100)
	}
	return major + "." + minor
}

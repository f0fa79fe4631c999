package serve

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/env/monitoring"
)

// dashboards are the files of the dashboards.
const dashboards = "../../../manifests/components/grafana-dashboards/*.json"

var (
	labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

func matching(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

// panelQueries returns the queries of the panels of the dashboards, by where they are.
func panelQueries(t *testing.T) map[string]string {
	t.Helper()
	queries := map[string]string{}
	for _, path := range matching(t, dashboards) {
		panels, err := monitoring.PanelQueries(path)
		require.NoError(t, err)
		for i, query := range panels {
			where := fmt.Sprintf("%s: %s (query %d)", filepath.Base(path), query.Panel, i)
			queries[where] = query.Expr
			for _, label := range legendLabel.FindAllStringSubmatch(query.Legend, -1) {
				assert.Regexp(t, `^(histogram_quantile\([0-9.]+, )?\w+ by \([^)]*\b`+label[1]+`\b`, query.Expr, where)
			}
		}
	}
	return queries
}

// variableQueries returns the queries of the variables of the dashboards, as PromQL, by where they are.
func variableQueries(t *testing.T) map[string]string {
	t.Helper()
	queries := map[string]string{}
	for _, path := range matching(t, dashboards) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var dashboard struct {
			Templating struct {
				List []struct{ Name, Type, Definition string }
			}
		}
		require.NoError(t, json.Unmarshal(text, &dashboard))
		for _, variable := range dashboard.Templating.List {
			if variable.Type == "query" {
				parts := labelValues.FindStringSubmatch(variable.Definition)
				require.NotNil(t, parts, variable.Definition)
				queries[path+": "+variable.Name] = "group by (" + parts[2] + ") (" + parts[1] + ")"
			}
		}
	}
	return queries
}

// alertQueries returns the queries of the alerts by their names.
func alertQueries(t *testing.T) map[string]string {
	t.Helper()
	queries := map[string]string{}
	for _, path := range matching(t, "../../../manifests/alerts/*.yaml") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var rules struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &rules))
		for _, rule := range rules.Groups[0].Rules {
			queries[rule.Alert] = rule.Expr
		}
	}
	return queries
}

// ofTargets are the labels that every series of a pod has by docs/operating.md.
var ofTargets = []string{"namespace", "pod", "instance"}

// TestQueriesNameWhatIsExposed holds the alerts and the dashboards to metrics that there are, with
// the labels that they have.
func TestQueriesNameWhatIsExposed(t *testing.T) {
	exposed := expose(t)
	promQL := parser.NewParser(parser.Options{})
	for _, queries := range []map[string]string{alertQueries(t), panelQueries(t), variableQueries(t)} {
		require.NotEmpty(t, queries)
		for where, query := range queries {
			expr, err := promQL.ParseExpr(query)
			require.NoError(t, err, "%s: %s", where, query)
			checkLabels(t, exposed, where, expr)
		}
	}
}

// checkLabels fails the test unless all metrics below a node exist, and selectors and aggregations
// name labels that they have.
func checkLabels(t *testing.T, exposed *exposed, where string, root parser.Node) {
	t.Helper()
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			have := exposed.labelsOf(t, where, n.Name)
			for _, matcher := range n.LabelMatchers {
				if matcher.Name != model.MetricNameLabel {
					assert.Contains(t, have, matcher.Name, "%s: %s", where, n)
				}
			}
		case *parser.AggregateExpr:
			assert.False(t, n.Without, where)
			for _, name := range n.Grouping {
				assert.True(t, someHas(t, exposed, where, n.Expr, name), "%s: no series has the label %s: %s", where,
					name, n)
			}
		}
		return nil
	})
}

// someHas returns whether a metric below a node has a label.
func someHas(t *testing.T, exposed *exposed, where string, root parser.Node, label string) bool {
	t.Helper()
	found := false
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			found = found || slices.Contains(exposed.labelsOf(t, where, selector.Name), label)
		}
		return nil
	})
	return found
}

// labelsOf returns the labels of the series of a name, with those that Prometheus adds.
func (e *exposed) labelsOf(t *testing.T, where, series string) []string {
	t.Helper()
	family := histogramSeries.ReplaceAllString(series, "_seconds")
	require.Contains(t, e.families, family, where)
	have := append(slices.Clone(ofTargets), strings.Split(e.labels[family], ",")...)
	switch {
	case strings.HasSuffix(series, "_bucket"):
		return append(have, "le")
	case family == "foresail_node_sample_age_seconds": // a summary
		return append(have, "quantile")
	}
	return have
}

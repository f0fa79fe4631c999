// Package docs_test checks the documentation against the code: blocks are valid, metrics and tests exist, links resolve, tables are
// up to date.
package docs_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/foresail/foresail/adapter/extender"
	"github.com/foresail/foresail/adapter/externalmetrics"
	"github.com/foresail/foresail/adapter/forecaster"
	"github.com/foresail/foresail/adapter/nodeusage"
	"github.com/foresail/foresail/adapter/source/pods"
	"github.com/foresail/foresail/adapter/source/prometheus"
	"github.com/foresail/foresail/adapter/source/remotewrite"
	"github.com/foresail/foresail/adapter/source/resource"
	"github.com/foresail/foresail/internal/docgen"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/tell"
)

// pages returns the pages by their paths from here.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "decisions/*.md", "../README.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			found[file] = string(text)
		}
	}
	return found
}

var nodeQuery = regexp.MustCompile(`--extender-(?:cpu|memory)-query='([^']+)'`)

// TestQueriesOfNodesHaveARange checks the examples by Foresail's own rule.
func TestQueriesOfNodesHaveARange(t *testing.T) {
	queries := nodeQuery.FindAllStringSubmatch(pages(t)["extender.md"], -1)
	assert.Len(t, queries, 4)
	for _, match := range queries {
		assert.Equal(t, time.Minute, nodeusage.LookBack(match[1]), match[1])
	}
}

// metric is one of Foresail's own metrics.
type metric struct{ name, labels, help string }

// catalogue is a Registerer that keeps Foresail's own metrics.
type catalogue struct{ metrics []metric }

var description = regexp.MustCompile(`fqName: "(foresail_[^"]+)", help: ("(?:[^"\\]|\\.)*"), unit: "[^"]*", constLabels: \{.*?\}, variableLabels: \{(.*?)\}`)

func (c *catalogue) Register(collector client.Collector) error {
	described := make(chan *client.Desc)
	go func() {
		collector.Describe(described)
		close(described)
	}()
	for desc := range described {
		if match := description.FindStringSubmatch(desc.String()); match != nil {
			help, err := strconv.Unquote(match[2])
			if err != nil {
				return err
			}
			c.metrics = append(c.metrics, metric{name: match[1], labels: match[3], help: help})
		}
	}
	return nil
}

func (c *catalogue) MustRegister(all ...client.Collector) {
	for _, collector := range all {
		if err := c.Register(collector); err != nil {
			panic(err)
		}
	}
}

func (c *catalogue) Unregister(client.Collector) bool { return false }

// metrics returns Foresail's own metrics, sorted by name.
func metrics(t *testing.T) []metric {
	t.Helper()
	c := &catalogue{}
	c.MustRegister(externalmetrics.New(forecaster.New(time.Now, c), time.Now))
	pods.New(pods.Options{Registerer: c})
	prometheus.New(prometheus.Options{Registerer: c})
	remotewrite.New(remotewrite.Options{Registerer: c})
	resource.New(resource.Options{Registerer: c})
	tell.NewMetrics(c)
	loads, err := nodeusage.New(nodeusage.Options{Source: &nodeusage.MetricsAPI{}, Registry: c})
	require.NoError(t, err)
	_, err = extender.New(extender.Options{
		Client: fake.NewClientset(), Forecasts: loads, RemovalMark: drain.Mark, Rules: extender.DefaultRules(), Registry: c,
	})
	require.NoError(t, err)
	server, err := extender.NewServer(extender.ServerOptions{Address: "127.0.0.1:0", Registry: c}, nil, nil)
	require.NoError(t, err)
	over, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, server.Run(over))
	slices.SortFunc(c.metrics, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return slices.Compact(c.metrics)
}

var (
	metricName      = regexp.MustCompile(`foresail_[a-z_]+`)
	histogramSeries = regexp.MustCompile(`_seconds_(bucket|count|sum)$`)
)

func TestMetricsThatPagesNameExist(t *testing.T) {
	var names []string
	for _, m := range metrics(t) {
		names = append(names, m.name)
	}
	require.NotEmpty(t, names)
	for page, text := range pages(t) {
		for _, name := range metricName.FindAllString(text, -1) {
			assert.Contains(t, names, histogramSeries.ReplaceAllString(name, "_seconds"), page)
		}
	}
}

// metricSections are the generated tables of metrics in operating.md, by the prefixes of their names. The first that fits counts.
var metricSections = []struct {
	name     string
	prefixes []string
	labels   string // of all of them, left out of the table
}{
	{"metrics-pods", []string{"foresail_scrape"}, ""},
	{"metrics-prometheus", []string{"foresail_prometheus_"}, ""},
	{"metrics-remote-write", []string{"foresail_remote_write_"}, ""},
	{"metrics-resource", []string{"foresail_resource_"}, ""},
	{"metrics-worker-pools", []string{"foresail_nodepool_"}, "pool"},
	{"metrics-extender", []string{"foresail_extender_", "foresail_node_"}, ""},
	{"metrics-process", []string{"foresail_forecasts_total", "foresail_forecast_round_", "foresail_external_metric_"}, ""},
	{"metrics-predictedmetrics", []string{"foresail_"}, "namespace,predictedmetric"},
}

func TestMetricTablesAreGenerated(t *testing.T) {
	tables := map[string][][]string{}
	for _, m := range metrics(t) {
		for _, section := range metricSections {
			if !slices.ContainsFunc(section.prefixes, func(prefix string) bool { return strings.HasPrefix(m.name, prefix) }) {
				continue
			}
			name := m.name
			if labels := strings.Trim(strings.TrimPrefix(m.labels, section.labels), ","); labels != "" {
				name += "{" + labels + "}"
			}
			tables[section.name] = append(tables[section.name], []string{"`" + name + "`", m.help})
			break
		}
	}
	for _, section := range metricSections {
		rows := append([][]string{{"metric", ""}}, tables[section.name]...)
		docgen.Verify(t, "operating.md", section.name, docgen.Table(rows))
	}
}

var packageName = regexp.MustCompile("`([a-z][a-z0-9/]+)`")

// TestArchitectureNamesEveryPackage compares the rows of architecture.md with the folders that have code. Folders of tests' own
// programs and suites need no row.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	var named []string
	for line := range strings.Lines(pages(t)["architecture.md"]) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		for _, match := range packageName.FindAllStringSubmatch(cells[1], -1) {
			named = append(named, match[1])
			assert.DirExists(t, filepath.Join("..", match[1]))
		}
	}
	require.NotEmpty(t, named)
	for _, root := range []string{"adapter", "api", "cmd", "internal", "nodepool", "pipeline", "test"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", root), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" {
				return err
			}
			folder := strings.TrimPrefix(filepath.Dir(path), "../")
			part := strings.HasPrefix(folder, "test/") && strings.Count(folder, "/") > 1
			if !part && !strings.HasSuffix(folder, "test") && !slices.Contains(named, folder) {
				assert.Fail(t, "architecture.md has no row for "+folder)
				named = append(named, folder)
			}
			return nil
		}))
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^a-z0-9 _-]`)
)

func TestLinksResolve(t *testing.T) {
	for page, text := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(match[1], "#")
			path := page
			if file != "" {
				path = filepath.Join(filepath.Dir(page), file)
			}
			content, err := os.ReadFile(path)
			if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
				continue
			}
			if assert.NoError(t, err, page) && anchor != "" {
				assert.True(t, slices.Contains(anchors(string(content)), anchor), "%s: %s", page, match[1])
			}
		}
	}
}

// anchors are what the headings of a page are linked by.
func anchors(page string) []string {
	var found []string
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		plain := dropped.ReplaceAllString(strings.ToLower(match[1]), "")
		found = append(found, strings.ReplaceAll(plain, " ", "-"))
	}
	return found
}

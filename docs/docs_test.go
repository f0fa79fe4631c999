// Package docs_test holds the documentation to what it is about: snippets are valid, metrics and flags exist, links lead
// somewhere.
package docs_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/extender"
	"github.com/foresail/foresail/adapter/externalmetrics"
	"github.com/foresail/foresail/adapter/forecaster"
	"github.com/foresail/foresail/adapter/nodeload"
	"github.com/foresail/foresail/adapter/params"
	"github.com/foresail/foresail/adapter/source/pods"
	"github.com/foresail/foresail/adapter/source/prometheus"
	"github.com/foresail/foresail/adapter/source/remotewrite"
	"github.com/foresail/foresail/adapter/source/resource"
	"github.com/foresail/foresail/internal/crdtest"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/nodepool/drain"
	"github.com/foresail/foresail/nodepool/tell"
)

// pages are the documents, by their paths from here.
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

var fence = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// snippets returns the YAML documents of a page.
func snippets(page string) []string {
	var found []string
	for _, match := range fence.FindAllStringSubmatch(page, -1) {
		block := strings.ReplaceAll("\n"+match[2], "\n"+match[1], "\n")
		found = append(found, strings.Split(block, "\n---\n")...)
	}
	return found
}

// object reads a snippet, with whole numbers as such.
func object(t *testing.T, snippet string) map[string]any {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(snippet))
	require.NoError(t, err, snippet)
	var o map[string]any
	require.NoError(t, json.Unmarshal(text, &o), snippet)
	return o
}

func TestSnippets(t *testing.T) {
	crd := crdtest.Load(t, "../manifests/crds/foresail.dev_predictedmetrics.yaml")
	seen := map[string]int{}
	for page, text := range pages(t) {
		for _, snippet := range snippets(text) {
			o := object(t, snippet)
			switch {
			case o["kind"] == "PredictedMetric":
				seen["PredictedMetric"]++
				isPredictedMetric(t, crd, page, snippet, o)
			case o["kind"] == "PrometheusRule":
				seen["rules"]++
				areRules(t, o["spec"])
			case o["groups"] != nil:
				seen["rules"]++
				areRules(t, o)
			case o["kind"] == "NetworkPolicy":
				seen["NetworkPolicy"]++
				assert.NoError(t, yaml.UnmarshalStrict([]byte(snippet), &networkingv1.NetworkPolicy{}), page)
			case o["kind"] == "Kustomization":
				seen["Kustomization"]++
				file, err := os.ReadFile("../manifests/examples/combined/kustomization.yaml")
				require.NoError(t, err)
				assert.Equal(t, object(t, string(file)), o, page)
			case o["servers"] != nil:
				seen["servers"]++
				areServers(t, snippet)
			}
		}
	}
	assert.Equal(t, map[string]int{"PredictedMetric": 5, "rules": 3, "servers": 1, "NetworkPolicy": 1, "Kustomization": 1}, seen)
}

var nodeQuery = regexp.MustCompile(`--extender-(?:cpu|memory)-query='([^']+)'`)

// TestQueriesOfNodesAreTaken: one that says not how far it looks back is refused.
func TestQueriesOfNodesAreTaken(t *testing.T) {
	queries := nodeQuery.FindAllStringSubmatch(pages(t)["extender.md"], -1)
	assert.Len(t, queries, 4)
	for _, match := range queries {
		assert.Equal(t, time.Minute, nodeload.LookBack(match[1]), match[1])
	}
}

func isPredictedMetric(t *testing.T, crd *crdtest.Definition, page, snippet string, o map[string]any) {
	t.Helper()
	assert.Empty(t, crd.UnknownFields(o), page)
	crd.Default(o)
	assert.Empty(t, crd.Validate(o), page)
	spec, err := params.ParseSpec([]byte(snippet))
	require.NoError(t, err, page)
	_, err = params.FromSpec(spec)
	assert.NoError(t, err, page)
}

func areRules(t *testing.T, spec any) {
	t.Helper()
	text, err := yaml.Marshal(spec)
	require.NoError(t, err)
	var rules struct {
		Groups []struct {
			Name, Interval string
			Rules          []struct {
				Alert, Record, Expr, For string
				Labels, Annotations      map[string]string
			}
		}
	}
	require.NoError(t, yaml.UnmarshalStrict(text, &rules))
	require.NotEmpty(t, rules.Groups)
	for _, group := range rules.Groups {
		require.NotEmpty(t, group.Rules)
		for _, rule := range group.Rules {
			assert.NotEqual(t, rule.Alert == "", rule.Record == "", "one of the two")
			assert.NotEmpty(t, rule.Expr)
		}
	}
}

func areServers(t *testing.T, snippet string) {
	t.Helper()
	folder := t.TempDir()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for file, content := range map[string][]byte{"servers.yaml": []byte(snippet), "ca.crt": authority, "token": []byte("t"), "password": []byte("p")} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), content, 0o600))
	}
	_, err := promapi.LoadServers(filepath.Join(folder, "servers.yaml"))
	assert.NoError(t, err)
}

// catalogue is a Registerer that keeps the names of Foresail's own metrics.
type catalogue struct{ names []string }

var descName = regexp.MustCompile(`fqName: "(foresail_[^"]+)"`)

func (c *catalogue) Register(collector client.Collector) error {
	described := make(chan *client.Desc)
	go func() {
		collector.Describe(described)
		close(described)
	}()
	for desc := range described {
		if match := descName.FindStringSubmatch(desc.String()); match != nil {
			c.names = append(c.names, match[1])
		}
	}
	return nil
}

func (c *catalogue) MustRegister(all ...client.Collector) {
	for _, collector := range all {
		_ = c.Register(collector) // never fails
	}
}

func (c *catalogue) Unregister(client.Collector) bool { return false }

func metrics(t *testing.T) []string {
	t.Helper()
	c := &catalogue{}
	c.MustRegister(externalmetrics.New(forecaster.New(time.Now, c), time.Now))
	pods.New(pods.Options{Registerer: c})
	prometheus.New(prometheus.Options{Registerer: c})
	remotewrite.New(remotewrite.Options{Registerer: c})
	resource.New(resource.Options{Registerer: c})
	tell.NewMetrics(c)
	loads, err := nodeload.New(nodeload.Options{Source: &nodeload.MetricsAPI{}, Registry: c})
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
	return c.names
}

var (
	metricName      = regexp.MustCompile(`foresail_[a-z_]+`)
	histogramSeries = regexp.MustCompile(`_seconds_(bucket|count|sum)$`)
)

func TestMetricsAreThoseThatThereAre(t *testing.T) {
	there := metrics(t)
	require.NotEmpty(t, there)
	for page, text := range pages(t) {
		for _, name := range metricName.FindAllString(text, -1) {
			assert.Contains(t, there, histogramSeries.ReplaceAllString(name, "_seconds"), page)
		}
	}
	told := metricName.FindAllString(pages(t)["operating.md"], -1)
	for _, name := range there {
		assert.Contains(t, told, name, "operating.md has all of them")
	}
}

// flagSources returns the files that define flags of run whose names tell what they are of.
func flagSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, file := range []string{"sources.go", "nodepool.go", "costreports.go", "extender.go"} {
		source, err := os.ReadFile("../cmd/foresail/" + file)
		require.NoError(t, err)
		all.Write(source)
	}
	return all.String()
}

const prefixes = "(?:remote-write|prometheus|scrape|nodepool|notify|extender)"

var flagName = regexp.MustCompile("--(" + prefixes + "-[a-z-]*[a-z])")

func TestFlagsAreThoseThatThereAre(t *testing.T) {
	source := flagSources(t)
	found := 0
	for page, text := range pages(t) {
		for _, match := range flagName.FindAllStringSubmatch(text, -1) {
			found++
			assert.Contains(t, source, fmt.Sprintf("%q", match[1]), page)
		}
	}
	assert.NotZero(t, found)
}

var definedFlag = regexp.MustCompile(`"(` + prefixes + `-[a-z-]*[a-z])"`)

func TestOperatingHasEveryFlagOfSources(t *testing.T) {
	source := flagSources(t)
	defined := definedFlag.FindAllStringSubmatch(source, -1)
	require.GreaterOrEqual(t, len(defined), strings.Count(source, "Var("), "flags of other names are to be found too")
	told := pages(t)["operating.md"] + pages(t)["extender.md"]
	for _, match := range defined {
		assert.Contains(t, told, "| `--"+match[1]+"` |", "operating.md has all of them, extender.md those of the extender")
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^a-z0-9 _-]`)
)

func TestLinksLeadSomewhere(t *testing.T) {
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

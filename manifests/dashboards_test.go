package manifests_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const dashboards = "components/grafana-dashboards/"

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// dashboard is what is held to something of a dashboard of Grafana. internal/cli/serve checks the queries.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name       string      `json:"name"`
			Type       string      `json:"type"`
			Datasource *datasource `json:"datasource"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID         int            `json:"id"`
		Type       string         `json:"type"`
		Title      string         `json:"title"`
		Datasource *datasource    `json:"datasource"`
		GridPos    map[string]int `json:"gridPos"`
		Targets    []struct {
			RefID      string      `json:"refId"`
			Datasource *datasource `json:"datasource"`
			Expr       string      `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

func TestDashboardsFitAnyGrafana(t *testing.T) {
	paths, err := filepath.Glob(dashboards + "*.json")
	require.NoError(t, err)
	require.Len(t, paths, 3)
	chosen := &datasource{Type: "prometheus", UID: "${datasource}"}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var d dashboard
		require.NoError(t, json.Unmarshal(text, &d), path)
		assert.Equal(t, strings.TrimSuffix(filepath.Base(path), ".json"), d.UID, "links to it stay")
		assert.NotContains(t, string(text), `"__inputs"`, "the sidecar does not ask")
		assert.GreaterOrEqual(t, d.SchemaVersion, 39, path)

		require.Greater(t, len(d.Templating.List), 1, path)
		assert.Equal(t, "datasource", d.Templating.List[0].Name)
		assert.Equal(t, "datasource", d.Templating.List[0].Type)
		assert.Equal(t, "namespace", d.Templating.List[1].Name)
		for _, variable := range d.Templating.List[1:] {
			assert.Equal(t, chosen, variable.Datasource, variable.Name)
		}
		ids, places := map[int]bool{}, map[[2]int]bool{}
		for _, panel := range d.Panels {
			assert.False(t, ids[panel.ID], panel.Title)
			ids[panel.ID] = true
			for x := range panel.GridPos["w"] {
				for y := range panel.GridPos["h"] {
					place := [2]int{panel.GridPos["x"] + x, panel.GridPos["y"] + y}
					assert.False(t, places[place], "%s: %s overlaps", path, panel.Title)
					assert.Less(t, place[0], 24)
					places[place] = true
				}
			}
			if panel.Type == "row" {
				continue
			}
			assert.Equal(t, chosen, panel.Datasource, panel.Title)
			require.NotEmpty(t, panel.Targets, panel.Title)
			refs := map[string]bool{}
			for _, target := range panel.Targets {
				assert.Equal(t, chosen, target.Datasource, panel.Title)
				assert.False(t, refs[target.RefID], panel.Title)
				refs[target.RefID] = true
			}
		}
	}
}

func TestGrafanaIsGivenEveryDashboard(t *testing.T) {
	given := map[string]string{}
	for _, object := range render(t, dashboards) {
		o := object.(*corev1.ConfigMap)
		assert.Equal(t, "1", o.Labels["grafana_dashboard"], "the sidecar selects by it")
		assert.Equal(t, "foresail-system", o.Namespace)
		maps.Copy(given, o.Data)
	}
	paths, err := filepath.Glob(dashboards + "*.json")
	require.NoError(t, err)
	want := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		want[filepath.Base(path)] = string(text)
	}
	assert.Equal(t, want, given)
}

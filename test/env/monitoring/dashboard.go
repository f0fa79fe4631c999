package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// PanelQuery is a query of a panel of a dashboard.
type PanelQuery struct {
	// Panel is the title of the panel.
	Panel string
	// Expr is the query, in which Grafana's variables have been replaced.
	Expr string
	// Legend is the template of the names of its series.
	Legend string
}

// grafana replaces the variables of the dashboards in this repository: all namespaces, pools and
// PredictedMetrics, and a rate over four scrapes of 15 s.
var grafana = strings.NewReplacer("$__rate_interval", "1m", "$namespace", ".*", "$predictedmetric", ".*", "$pool", ".*")

// PanelQueries returns the queries of all panels of a dashboard of Grafana.
func PanelQueries(path string) ([]PanelQuery, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr         string `json:"expr"`
				LegendFormat string `json:"legendFormat"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var queries []PanelQuery
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, PanelQuery{Panel: panel.Title, Expr: grafana.Replace(target.Expr),
				Legend: target.LegendFormat})
		}
	}
	return queries, nil
}

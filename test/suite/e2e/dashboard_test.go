package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/monitoring"
)

// dashboardHasData: a Prometheus that scrapes Foresail answers every query of the dashboard of
// forecasts. This Foresail serves neither Object metrics nor KEDA.
func dashboardHasData(t *testing.T, server *monitoring.Prometheus) {
	queries, err := monitoring.PanelQueries("../../../manifests/components/grafana-dashboards/foresail.json")
	require.NoError(t, err)
	api, err := server.API()
	require.NoError(t, err)
	for _, query := range queries {
		if strings.Contains(query.Expr, `api="custom"`) || strings.Contains(query.Expr, "foresail_keda_") {
			continue
		}
		value, warnings, err := api.Query(t.Context(), query.Expr, time.Now())
		require.NoError(t, err, query.Expr)
		assert.Empty(t, warnings, query.Expr)
		assert.NotEmpty(t, value.(model.Vector), "%s: %s", query.Panel, query.Expr)
	}
}

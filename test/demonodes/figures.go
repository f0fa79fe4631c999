package main

import (
	"context"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// figures are the numbers of now, which the status of a pool is behind of. The zero value is none.
type figures struct {
	known           bool
	load, predicted float64
	desired         int
}

// readFigures reads them off Foresail's metrics. What cannot be read is not known.
func readFigures(ctx context.Context, address string) figures {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return figures{}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return figures{}
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return figures{}
	}
	return figuresOf(families)
}

func figuresOf(families map[string]*dto.MetricFamily) figures {
	load, ok := gauge(families["foresail_nodepool_signal_load"], "requests")
	predicted, also := gauge(families["foresail_nodepool_signal_predicted_load"], "requests")
	desired, _ := gauge(families["foresail_nodepool_desired_workers"], "")
	return figures{known: ok && also, load: load, predicted: predicted, desired: int(desired)}
}

// gauge is the value of the pool, of one signal if one is named.
func gauge(family *dto.MetricFamily, signal string) (float64, bool) {
	for _, m := range family.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["pool"] == poolName && labels["signal"] == signal {
			return m.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

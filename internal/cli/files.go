package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/adapter/forecast/params"
	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/prices"
)

// ReadMetricFile reads a PredictedMetric from a manifest; - is standard input.
func ReadMetricFile(file string, stdin io.Reader) (*v1alpha1.PredictedMetric, error) {
	read := func() ([]byte, error) { return os.ReadFile(file) }
	if file == "-" {
		read = func() ([]byte, error) { return io.ReadAll(stdin) }
	}
	data, err := read()
	if err != nil {
		return nil, err
	}
	spec, err := params.ParseSpec(data)
	if err != nil {
		return nil, err
	}
	if _, err := params.FromSpec(spec); err != nil {
		return nil, err
	}
	pm := &v1alpha1.PredictedMetric{}
	if err := yaml.Unmarshal(data, pm); err != nil {
		return nil, err
	}
	if pm.Name == "" {
		return nil, errors.New("metadata.name is missing: the HPA selects the metric by it")
	}
	pm.Spec = spec
	return pm, nil
}

// ReadPrices reads the file that a flag names, if it does.
func ReadPrices(flag, file string) (prices.Prices, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, BadFlag(flag, err, prices.Help)
	}
	usd, err := prices.Parse(text)
	if err != nil {
		return nil, Unusable(fmt.Errorf("--%s %s: %w", flag, file, err))
	}
	return usd, nil
}

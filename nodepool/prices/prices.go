// Package prices reads the prices of instance types from a file.
package prices

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"

	"sigs.k8s.io/yaml"
)

// Help describes the format of a file of prices.
const Help = `a YAML file of US dollars an hour for each instance type, such as t3.small: {onDemand: 0.0208, spot: 0.0063}`

// Prices are the prices of instance types, by name.
type Prices map[string]fleet.Price

// Parse reads a file of prices. The error names each wrong price.
func Parse(text []byte) (Prices, error) {
	var p Prices
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		return nil, fmt.Errorf("%w: must be %s", err, Help)
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("it has no prices: must be %s", Help)
	}
	var wrong []string
	for instance, price := range p {
		if price.OnDemand == nil && price.Spot == nil {
			wrong = append(wrong, fmt.Sprintf("%s: must have onDemand, spot or both", instance))
		}
		for market, v := range map[string]*float64{"onDemand": price.OnDemand, "spot": price.Spot} {
			if v != nil && (!(*v >= 0) || math.IsInf(*v, 0)) {
				wrong = append(wrong, fmt.Sprintf("%s.%s: %v: must be a number of US dollars, 0 or more", instance, market, *v))
			}
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return nil, fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return p, nil
}

package prices_test

import (
	"testing"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/prices"
)

func TestParse(t *testing.T) {
	p, err := prices.Parse([]byte("t3.small: {onDemand: 0.0208, spot: 0}\nm5.large: {onDemand: 0.096}"))
	require.NoError(t, err)
	assert.Equal(t, prices.Prices{"t3.small": {OnDemand: new(0.0208), Spot: new(0.0)},
		"m5.large": {OnDemand: new(0.096)}}, p)
	assert.Equal(t, new(0.0208), p["t3.small"].Of(fleet.OnDemand))
	assert.Equal(t, new(0.0), p["t3.small"].Of(fleet.Spot))
	assert.Nil(t, p["m5.large"].Of(fleet.Spot), "what is not known is not 0")
}

func TestRejectsImpossiblePrices(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "it has no prices: must be a YAML file of US dollars an hour",
		"t3.small: 1":                        "must be a YAML file of US dollars",
		"t3.small: {onDemnad: 1}":            `unknown field "onDemnad"`,
		"t3.small: {}":                       "t3.small: must have onDemand, spot or both",
		"t3.small: {spot: -1}":               "t3.small.spot: -1: must be a number of US dollars, 0 or more",
		"a: {spot: -1}\nb: {onDemand: -0.5}": "a.spot: -1: must be a number of US dollars, 0 or more; b.onDemand: -0.5: must",
		"t3.small: {spot: .inf}":             "t3.small",
		"t3.small: {spot: 1}\nt3.small: {}":  "already set",
	} {
		_, err := prices.Parse([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}

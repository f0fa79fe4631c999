package score_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/internal/lab/score"
)

func TestPricesAreInOneCurrency(t *testing.T) {
	p := score.Prices{PodHour: 0.05, Minute: 2, Currency: "EUR"}
	assert.InDelta(t, 10.5, p.Bill(10, 5), 1e-12)
	for amount, want := range map[float64]string{0: "0.00 EUR", 0.0043: "0.0043 EUR", -1.5: "-1.50 EUR",
		1234.567: "1234.57 EUR"} {
		assert.Equal(t, want, p.Text(amount))
	}
}

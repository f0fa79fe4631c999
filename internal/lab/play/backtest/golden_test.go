package backtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/internal/lab/golden"
	"github.com/foresail/foresail/internal/lab/score"
)

// written are the files of a backtest and what a terminal gets, without charts of their own.
func written(t *testing.T, got map[string]string) map[string]string {
	t.Helper()
	for name, text := range got {
		if strings.HasSuffix(name, ".svg") || strings.HasSuffix(name, ".png") {
			assert.NotEmpty(t, text, name)
			delete(got, name)
		}
	}
	return got
}

func TestWhatABacktestWrites(t *testing.T) {
	o := options(t)
	o.Scalers = append(o.Scalers, "keda/same-behavior", "instant")
	golden.EqualAll(t, "backtest.txt", written(t, files(t, o)))
}

// With prices, with less room than the load needs, and with settings that are worth changing.
func TestWhatABacktestInMoneyWrites(t *testing.T) {
	o := options(t)
	o.Trace, o.Max, o.Seeds, o.Targets = traceOf(t, 60, waves), 9, []uint64{1, 2}, nil
	o.CapacityDerived, o.Prices = true, &score.Prices{PodHour: 0.5, Minute: 2, Currency: "EUR"}
	golden.EqualAll(t, "money.txt", written(t, files(t, o)))
}

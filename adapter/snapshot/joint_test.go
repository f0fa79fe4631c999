package snapshot

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/pipeline"
)

func TestJoin(t *testing.T) {
	asks := func(name string, wanted int) Snapshot {
		return Snapshot{
			Metric:   types.NamespacedName{Namespace: "shop", Name: name},
			Forecast: pipeline.Forecast{Target: 5}, Decision: pipeline.Decision{Wanted: wanted},
		}
	}
	silent := func(name string) Snapshot {
		s := asks(name, 99)
		s.Err = &Unavailable{Reason: Stale}
		return s
	}
	for name, c := range map[string]struct {
		all  []Snapshot
		want Joint
	}{
		"one":                          {[]Snapshot{asks("elu", 3)}, Joint{Wanted: 3, DrivenBy: "elu", Metrics: 1}},
		"the largest wins":             {[]Snapshot{asks("elu", 6), asks("heap", 8), asks("rps", 2)}, Joint{Wanted: 8, DrivenBy: "heap", Metrics: 3}},
		"the first by name of equals":  {[]Snapshot{asks("heap", 6), asks("elu", 6)}, Joint{Wanted: 6, DrivenBy: "elu", Metrics: 2}},
		"all down":                     {[]Snapshot{asks("elu", 3), asks("heap", 4)}, Joint{Wanted: 4, DrivenBy: "heap", Metrics: 2}},
		"one unknown holds":            {[]Snapshot{asks("elu", 3), silent("heap")}, Joint{Wanted: 5, DrivenBy: "heap", Metrics: 2, Unknown: []string{"heap"}}},
		"one unknown does not hold up": {[]Snapshot{asks("elu", 7), silent("heap")}, Joint{Wanted: 7, DrivenBy: "elu", Metrics: 2, Unknown: []string{"heap"}}},
		"none known":                   {[]Snapshot{silent("heap"), silent("elu")}, Joint{Metrics: 2, Unknown: []string{"elu", "heap"}}},
	} {
		assert.Equal(t, c.want, Join(c.all), name)
	}
}

package source

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/pipeline"
)

func TestRate(t *testing.T) {
	for name, c := range map[string]struct {
		readings, want []pipeline.Sample // times in ms
	}{
		"one reading tells nothing": {[]pipeline.Sample{{T: 1000, V: 5}}, nil},
		"increase per second":       {[]pipeline.Sample{{T: 1000, V: 5}, {T: 3000, V: 9}}, []pipeline.Sample{{T: 3000, V: 2}}},
		"reset":                     {[]pipeline.Sample{{T: 1000, V: 5}, {T: 2000, V: 3}}, []pipeline.Sample{{T: 2000, V: 3}}},
		"late and twice":            {[]pipeline.Sample{{T: 2000, V: 5}, {T: 1000, V: 4}, {T: 2000, V: 5}, {T: 3000, V: 6}}, []pipeline.Sample{{T: 3000, V: 1}}},
		"clock set back": {
			[]pipeline.Sample{{T: 100_000, V: 5}, {T: 40_000, V: 6}, {T: 41_000, V: 8}, {T: 42_000, V: 11}},
			[]pipeline.Sample{{T: 41_000, V: 2}, {T: 42_000, V: 3}},
		},
		"clock set forward": {
			[]pipeline.Sample{{T: 100_000, V: 5}, {T: 7_300_000, V: 6}, {T: 7_301_000, V: 8}},
			[]pipeline.Sample{{T: 7_301_000, V: 2}},
		},
	} {
		var r Rate
		var got []pipeline.Sample
		for _, x := range c.readings {
			if s, ok := r.Next(x); ok {
				got = append(got, s)
			}
		}
		assert.Equal(t, c.want, got, name)
	}
}

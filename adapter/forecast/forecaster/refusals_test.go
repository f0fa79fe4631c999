package forecaster

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
	"github.com/foresail/foresail/pipeline/gate"
)

func TestOutliersAreCountedAndTheNewestOfEachInstanceKept(t *testing.T) {
	outlier := func(instance string, at int64) gate.Outlier {
		return gate.Outlier{Instance: instance, Sample: pipeline.Sample{T: at, V: 9}}
	}
	var r refusals
	many := []gate.Outlier{outlier("a", 5000)}
	for at := range int64(4000) {
		many = append(many, outlier("a", at), outlier("b", at))
	}
	last := outlier("b", 9000)
	last.Newest = true
	r.setOutliers(append(many, last))
	assert.Equal(t, 8001, r.count(time.UnixMilli(0)))
	assert.Len(t, r.newest, 2)
	assert.Equal(t, map[string]error{"a": &many[0]}, r.reasons(time.UnixMilli(4000)))
	require.Len(t, r.reasons(time.UnixMilli(3999)), 2)
	perCall := testing.AllocsPerRun(10, func() { r.reasons(time.UnixMilli(0)) })
	assert.Less(t, perCall, 10.0, "outliers are not copied each second")

	many = many[:0]
	for i := range 4000 {
		many = append(many, outlier(fmt.Sprint(i), 1))
	}
	r.setOutliers(many)
	assert.Equal(t, 4000, r.count(time.UnixMilli(0)))
	assert.Len(t, r.newest, maxRefusals)
	r.setOutliers(nil)
	assert.Zero(t, r.count(time.UnixMilli(0)))
	assert.Empty(t, r.reasons(time.UnixMilli(0)))
}

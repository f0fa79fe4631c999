package cost

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDisagreeingReplicasAreUnknown(t *testing.T) {
	l := sample{
		Moment: Moment{Instances: map[Kind]int{small: 3}}, workers: new(4),
		hasRecommended: true, hasMin: true, hasMax: true,
	}
	_, known := l.moment()
	assert.False(t, known)
	l.workers = new(3)
	_, known = l.moment()
	assert.True(t, known)
	l.hasRecommended = false
	_, known = l.moment()
	assert.False(t, known)
}

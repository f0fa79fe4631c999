package nodepool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// Pods that claim devices get no node, and the recommendation that `explain` prints names the reason.
func TestPodsThatClaimDevicesAreNamed(t *testing.T) {
	pod := plain("500m")
	pod.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}}
	r, _ := empty(t, pod)
	r.pass(time.Hour)
	assert.Zero(t, r.world.launches)
	require.Len(t, r.last.Snapshot.Pending.Unhelped, 1)
	var reasons []string
	for _, recommendation := range r.last.Decision.Recommendations {
		reasons = append(reasons, recommendation.Reason)
	}
	require.NotEmpty(t, reasons)
	assert.Contains(t, reasons[0],
		"as it claims devices (spec.resourceClaims), and Foresail does not know which nodes have any")
}

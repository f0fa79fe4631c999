package signal

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/nodepool/cluster"
)

func TestShare(t *testing.T) {
	list := func(cpu, memory, pods string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{
			corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory, corev1.ResourcePods: pods,
		} {
			if text != "" {
				l[name] = resource.MustParse(text)
			}
		}
		return l
	}
	tests := map[string]struct {
		allocatable, requested, daemons corev1.ResourceList
		want                            loads
	}{
		"with DaemonSets": {
			list("4", "8Gi", "110"),
			list("2500m", "5Gi", "60"),
			list("1", "2Gi", "10"),
			loads{0.5, 0.5, 0.5},
		},
		"only DaemonSets":             {list("4", "8Gi", "110"), list("1", "2Gi", "10"), list("1", "2Gi", "10"), loads{}},
		"no DaemonSets":               {list("4", "8Gi", "100"), list("1", "4Gi", "10"), nil, loads{0.25, 0.5, 0.1}},
		"requested more than allowed": {list("4", "8Gi", "100"), list("8", "8Gi", "10"), nil, loads{2, 1, 0.1}},
		"DaemonSets leave nothing": {
			list("1", "1Gi", "100"),
			list("1", "2Gi", "10"),
			list("1", "2Gi", "10"),
			loads{1, 1, 0},
		},
		"less than its DaemonSets": {list("4", "8Gi", "100"), nil, list("1", "2Gi", "10"), loads{}},
		"not reported":             {nil, list("4", "8Gi", "110"), nil, loads{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := cluster.Node{
				Object:     &corev1.Node{Status: corev1.NodeStatus{Allocatable: test.allocatable}},
				Requested:  test.requested,
				DaemonSets: test.daemons,
			}
			got := share(&n)
			assert.InDeltaSlice(t, test.want[:], got[:], 1e-12)
		})
	}
}

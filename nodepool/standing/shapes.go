package standing

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/simulated"
)

// shapesOf returns the labels of the nodes that a provider can launch, as far as the spec tells them.
func shapesOf(p *v1alpha1.PoolProvider) []map[string]string {
	switch {
	case p.EC2 != nil:
		var zones []string
		for _, s := range p.EC2.Subnets {
			zones = append(zones, s.Zone)
		}
		return shapes(zones, p.EC2.InstanceTypes, map[string]string{corev1.LabelTopologyRegion: p.EC2.Region})
	case p.Simulated != nil:
		return shapes(p.Simulated.Zones, []string{simulated.InstanceType}, map[string]string{corev1.LabelArchStable: "amd64"})
	}
	return nil
}

func shapes(zones, types []string, more map[string]string) []map[string]string {
	var out []map[string]string
	for _, zone := range slices.Compact(slices.Sorted(slices.Values(zones))) {
		for _, kind := range types {
			labels := map[string]string{
				corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: zone, corev1.LabelInstanceTypeStable: kind,
			}
			maps.Copy(labels, more)
			out = append(out, labels)
		}
	}
	return out
}

package ec2

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
)

// testMaxPods compares with eni-max-pods.txt of EKS images, and with a fixed number.
func testMaxPods(t *testing.T, c cloud) {
	// p4d.24xlarge has four network cards, of which one counts.
	eni := map[string]string{"t3.medium": "17", "m5.large": "29", "c5.4xlarge": "234", "p4d.24xlarge": "737"}
	for _, test := range []struct {
		maxPods   *intstr.IntOrString
		overrides map[string]resource.Quantity
		want      func(instanceType string) string
	}{
		{want: func(string) string { return "110" }},
		{
			maxPods: new(intstr.FromString(v1alpha1.MaxPodsENI)),
			want:    func(instanceType string) string { return eni[instanceType] },
		},
		{maxPods: new(intstr.FromInt32(58)), want: func(string) string { return "58" }},
		{maxPods: new(intstr.FromString("58")), want: func(string) string { return "58" }},
		{
			maxPods:   new(intstr.FromString(v1alpha1.MaxPodsENI)),
			overrides: map[string]resource.Quantity{"pods": resource.MustParse("20")},
			want:      func(string) string { return "20" },
		},
	} {
		o := c.options("workers")
		o.Spec.MaxPods, o.Template.Allocatable = test.maxPods, test.overrides
		o.Spec.InstanceTypes = nil
		for instanceType := range eni {
			o.Spec.InstanceTypes = append(o.Spec.InstanceTypes, instanceType)
		}
		p, err := New(t.Context(), o)
		require.NoError(t, err)
		offers, err := p.Offers(t.Context())
		require.NoError(t, err)
		require.Len(t, offers, len(eni)*len(c.network.Subnets))
		for _, offer := range offers {
			require.Equal(t, test.want(offer.InstanceType), offer.Allocatable.Pods().String(), offer.InstanceType)
		}
	}
}

// testMaxPodsReserve: the kubelet reserves 11 MiB for each pod.
func testMaxPodsReserve(t *testing.T, c cloud) {
	memory := func(maxPods int32) int64 {
		o := c.options("workers")
		o.Spec.InstanceTypes, o.Spec.MaxPods = []string{"m5.large"}, new(intstr.FromInt32(maxPods))
		p, err := New(t.Context(), o)
		require.NoError(t, err)
		offers, err := p.Offers(t.Context())
		require.NoError(t, err)
		return offers[0].Allocatable.Memory().Value()
	}
	require.Equal(t, int64(10*11*mebi), memory(29)-memory(39))
}

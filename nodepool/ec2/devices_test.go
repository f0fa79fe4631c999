package ec2

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
)

func testDevices(t *testing.T, c cloud) {
	want := map[string]map[corev1.ResourceName]string{
		"t3.small":      {},
		"g5.12xlarge":   {"nvidia.com/gpu": "4"},
		"g6f.large":     {"nvidia.com/gpu": "1"}, // an eighth of one, of which EC2 counts 0
		"inf1.6xlarge":  {"aws.amazon.com/neuron": "4", "aws.amazon.com/neuroncore": "16"},
		"inf2.24xlarge": {"aws.amazon.com/neuron": "6", "aws.amazon.com/neuroncore": "12"},
	}
	o := c.options("workers")
	o.Spec.InstanceTypes = nil
	for name := range want {
		o.Spec.InstanceTypes = append(o.Spec.InstanceTypes, name)
	}
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	offers, err := p.Offers(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, len(want)*len(c.network.Subnets))
	for _, offer := range offers {
		got := map[corev1.ResourceName]string{}
		for name, quantity := range offer.Allocatable {
			switch name {
			case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage:
			default:
				got[name] = quantity.String()
			}
		}
		require.Equal(t, want[offer.InstanceType], got, offer.InstanceType)
	}

	o.Template = v1alpha1.NodeTemplate{
		Allocatable: map[string]resource.Quantity{"nvidia.com/gpu": resource.MustParse("40")},
	}
	p, err = New(t.Context(), o)
	require.NoError(t, err)
	offers, err = p.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, resource.MustParse("40"), offers[0].Allocatable["nvidia.com/gpu"], "time slices, as the pool says")
}

func TestDevices(t *testing.T) {
	gpus := func(maker string, count int32) types.InstanceTypeInfo {
		return types.InstanceTypeInfo{
			GpuInfo: &types.GpuInfo{Gpus: []types.GpuDeviceInfo{{Manufacturer: aws.String(maker), Count: aws.Int32(count)}}},
		}
	}
	inference := func(maker string) types.InstanceTypeInfo {
		return types.InstanceTypeInfo{
			InferenceAcceleratorInfo: &types.InferenceAcceleratorInfo{
				Accelerators: []types.InferenceDeviceInfo{{Manufacturer: aws.String(maker), Count: aws.Int32(3)}},
			},
		}
	}
	for name, test := range map[string]struct {
		shape types.InstanceTypeInfo
		want  corev1.ResourceList
	}{
		"none":            {want: corev1.ResourceList{}},
		"of AMD":          {gpus("AMD", 2), corev1.ResourceList{"amd.com/gpu": resource.MustParse("2")}},
		"of Habana":       {gpus("Habana", 8), corev1.ResourceList{"habana.ai/gaudi": resource.MustParse("8")}},
		"of another":      {gpus("Else", 8), corev1.ResourceList{}},
		"inference alone": {inference("AWS"), corev1.ResourceList{"aws.amazon.com/neuron": resource.MustParse("3")}},
		"another's":       {inference("Qualcomm"), corev1.ResourceList{}},
		"without a number": {
			types.InstanceTypeInfo{
				GpuInfo:    &types.GpuInfo{Gpus: []types.GpuDeviceInfo{{}}},
				NeuronInfo: &types.NeuronInfo{NeuronDevices: []types.NeuronDeviceInfo{{}}},
			},
			corev1.ResourceList{},
		},
	} {
		got := devices(test.shape)
		require.Len(t, got, len(test.want), name)
		for resource, quantity := range test.want {
			require.True(t, quantity.Equal(got[resource]), "%s: %s", name, resource)
		}
	}
}

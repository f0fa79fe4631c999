package ec2

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	neuron     corev1.ResourceName = "aws.amazon.com/neuron"
	neuronCore corev1.ResourceName = "aws.amazon.com/neuroncore"
)

// gpus are the resources that device plugins of GPUs register, by EC2's name of the manufacturer.
var gpus = map[string]corev1.ResourceName{
	"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi",
}

// devices returns the resources that device plugins register for a type's accelerators.
func devices(shape types.InstanceTypeInfo) corev1.ResourceList {
	list := corev1.ResourceList{}
	if shape.GpuInfo != nil {
		for _, gpu := range shape.GpuInfo.Gpus {
			// EC2 counts a part of a GPU as 0 GPUs and as 1 logical GPU.
			count := max(aws.ToInt32(gpu.Count), aws.ToInt32(gpu.LogicalGpuCount))
			addDevices(list, gpus[aws.ToString(gpu.Manufacturer)], count)
		}
	}
	switch {
	case shape.NeuronInfo != nil:
		for _, device := range shape.NeuronInfo.NeuronDevices {
			count := aws.ToInt32(device.Count)
			addDevices(list, neuron, count)
			if device.CoreInfo != nil {
				addDevices(list, neuronCore, count*aws.ToInt32(device.CoreInfo.Count))
			}
		}
	case shape.InferenceAcceleratorInfo != nil: // the same devices in EC2's older form
		for _, device := range shape.InferenceAcceleratorInfo.Accelerators {
			if aws.ToString(device.Manufacturer) == "AWS" {
				addDevices(list, neuron, aws.ToInt32(device.Count))
			}
		}
	}
	return list
}

func addDevices(list corev1.ResourceList, name corev1.ResourceName, n int32) {
	if name == "" || n <= 0 {
		return
	}
	sum := list[name]
	sum.Add(*resource.NewQuantity(int64(n), resource.DecimalSI))
	list[name] = sum
}

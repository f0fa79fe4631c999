package ec2

import (
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	mebi = 1 << 20
	gibi = 1 << 30

	defaultMaxPods = 110 // the kubelet's
	// overhead is the share of an instance's memory that its hypervisor, firmware and kernel keep.
	overhead = 0.075
	// evictionMemory is the free memory below which the kubelet evicts pods.
	evictionMemory = 100 * mebi
	// reservedStorage is the storage that the kubelet of EKS reserves for itself and the system.
	reservedStorage = 1 * gibi
)

// allocatable estimates the resources that pods can use of a node: those of its type, less what the kubelet and the
// system reserve on nodes of EKS: CPU by a falling share of each core, and memory by the number of pods, which is the
// pool's or that of the addresses on the network interfaces.
func allocatable(shape types.InstanceTypeInfo, maxPods *intstr.IntOrString) corev1.ResourceList {
	var cores, memory int64
	if shape.VCpuInfo != nil {
		cores = int64(aws.ToInt32(shape.VCpuInfo.DefaultVCpus))
	}
	if shape.MemoryInfo != nil {
		memory = aws.ToInt64(shape.MemoryInfo.SizeInMiB) * mebi
	}
	pods, reserved := int64(defaultMaxPods), min(addresses(shape), defaultMaxPods)
	if maxPods != nil {
		pods = podsOf(shape, *maxPods)
		reserved = pods
	}
	memory -= int64(float64(memory)*overhead) + reservedMemory(reserved) + evictionMemory
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cores*1000-reservedCPU(cores), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(max(0, memory), resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(pods, resource.DecimalSI),
	}
}

// ephemeralStorage estimates the bytes that pods can use of a volume of that many GiB: without the file system and the
// system's partitions, the tenth below which the kubelet evicts pods, and the kubelet's reserve.
func ephemeralStorage(volume int64) int64 {
	capacity := volume * gibi / 100 * 95
	return max(0, capacity-capacity/10-reservedStorage)
}

// podsOf returns the number of pods that a node of a type takes if the pool sets it.
func podsOf(shape types.InstanceTypeInfo, maxPods intstr.IntOrString) int64 {
	if maxPods.String() == v1alpha1.MaxPodsENI {
		return addresses(shape)
	}
	n, err := strconv.ParseInt(maxPods.String(), 10, 32)
	if err != nil {
		return defaultMaxPods // the CRD admits no other value
	}
	return n
}

// addresses returns the number of pods that a type has addresses for on its network interfaces: each interface keeps
// one address for itself, and two pods share the host's. The VPC CNI uses the interfaces of the default network card
// alone.
func addresses(shape types.InstanceTypeInfo) int64 {
	network := shape.NetworkInfo
	if network == nil || network.MaximumNetworkInterfaces == nil || network.Ipv4AddressesPerInterface == nil {
		return defaultMaxPods
	}
	interfaces := int64(*network.MaximumNetworkInterfaces)
	for _, card := range network.NetworkCards {
		byDefault := aws.ToInt32(card.NetworkCardIndex) == aws.ToInt32(network.DefaultNetworkCardIndex)
		if byDefault && card.MaximumNetworkInterfaces != nil {
			interfaces = int64(*card.MaximumNetworkInterfaces)
		}
	}
	return interfaces*(int64(*network.Ipv4AddressesPerInterface)-1) + 2
}

// reservedMemory returns the bytes that the kubelet of EKS reserves on a node that takes that many pods.
func reservedMemory(pods int64) int64 { return (255 + 11*pods) * mebi }

// reservedCPU returns thousandths of a core: 6% of the first, 1% of the second, 0.5% of the next two, 0.25% of the
// rest.
func reservedCPU(cores int64) int64 {
	tenths := 600*min(cores, 1) + 100*clamp(cores-1, 1) + 50*clamp(cores-2, 2) + 25*max(0, cores-4)
	return tenths / 10
}

func clamp(n, limit int64) int64 { return max(0, min(n, limit)) }

// architecture returns a type's newest architecture as Kubernetes names it: types with 32 bits have 64 too.
func architecture(shape types.InstanceTypeInfo) string {
	if shape.ProcessorInfo != nil &&
		slices.Contains(shape.ProcessorInfo.SupportedArchitectures, types.ArchitectureTypeArm64) {
		return "arm64"
	}
	return "amd64"
}

package ec2

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
)

// Offers implements [provider.Provider]: each instance type in each subnet where EC2 has it. What named instance types are
// does not change, so they are asked for once.
func (p *Provider) Offers(ctx context.Context) ([]provider.Offer, error) {
	if p.options.Spec.Requirements != nil {
		return p.offersByPrice(ctx)
	}
	shapes, err := p.knownShapes(ctx)
	if err != nil {
		return nil, err
	}
	volume, err := p.volume(ctx)
	if err != nil {
		return nil, err
	}
	return p.offersOf(p.options.Spec.InstanceTypes, shapes, volume), nil
}

// offersByPrice returns the types that meet the requirements, the cheapest first. Prices come last: without them there are
// offers all the same.
func (p *Provider) offersByPrice(ctx context.Context) ([]provider.Offer, error) {
	found, err := p.selected(ctx)
	if err != nil {
		return nil, err
	}
	volume, err := p.volume(ctx)
	if err != nil {
		return nil, err
	}
	price, why := p.prices(ctx)
	names := found.ranked(func(name string) *float64 { return p.cheapest(name, price) }, maxTypes)
	var offers []provider.Offer
	for _, o := range p.offersOf(names, found.shapes, volume) {
		if found.zones[o.InstanceType][o.Zone] {
			o.Price, o.PriceErr = price(o.InstanceType, o.Zone), why
			offers = append(offers, o)
		}
	}
	return offers, nil
}

func (p *Provider) knownShapes(ctx context.Context) (map[string]types.InstanceTypeInfo, error) {
	p.mu.Lock()
	known := p.types
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	shapes, err := p.shapes(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.types = shapes
	return shapes, nil
}

// shapes asks what the instance types of the pool are.
func (p *Provider) shapes(ctx context.Context) (map[string]types.InstanceTypeInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	input := &ec2.DescribeInstanceTypesInput{}
	for _, name := range p.options.Spec.InstanceTypes {
		input.InstanceTypes = append(input.InstanceTypes, types.InstanceType(name))
	}
	shapes := map[string]types.InstanceTypeInfo{}
	pages := ec2.NewDescribeInstanceTypesPaginator(p.client, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeInstanceTypes", err)
		}
		for _, shape := range page.InstanceTypes {
			shapes[string(shape.InstanceType)] = shape
		}
	}
	for _, name := range p.options.Spec.InstanceTypes {
		if _, ok := shapes[name]; !ok {
			return nil, &provider.Error{Class: provider.Invalid, Op: "DescribeInstanceTypes",
				Err: fmt.Errorf("EC2 tells nothing of the instance type %q", name)}
		}
	}
	return shapes, nil
}

// offersOf returns the offers of types whose nodes have a volume of so many GiB.
func (p *Provider) offersOf(names []string, shapes map[string]types.InstanceTypeInfo, volume int64) []provider.Offer {
	var offers []provider.Offer
	for _, name := range names {
		shape := shapes[name]
		allocatable := allocatable(shape, p.options.Spec.MaxPods)
		allocatable[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(ephemeralStorage(volume), resource.BinarySI)
		maps.Copy(allocatable, devices(shape))
		maps.Copy(allocatable, p.overrides())
		for _, subnet := range p.options.Spec.Subnets {
			labels := map[string]string{
				corev1.LabelTopologyZone:       subnet.Zone,
				corev1.LabelTopologyRegion:     p.options.Spec.Region,
				corev1.LabelInstanceTypeStable: name,
				corev1.LabelArchStable:         cmp.Or(p.architecture(), architecture(shape)),
				corev1.LabelOSStable:           string(corev1.Linux),
			}
			maps.Copy(labels, p.options.Template.Labels)
			offers = append(offers, provider.Offer{
				Offer:       fleet.Offer{Zone: subnet.Zone, Subnet: subnet.ID, InstanceType: name},
				Allocatable: allocatable.DeepCopy(), Labels: labels, Quota: quotaOf(name, shape),
			})
		}
	}
	return offers
}

// overrides is what the pool says that pods can use of a node.
func (p *Provider) overrides() corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, quantity := range p.options.Template.Allocatable {
		list[corev1.ResourceName(name)] = quantity
	}
	return list
}

// architecture is that of the image, "" if the pool does not say it.
func (p *Provider) architecture() string {
	if r := p.options.Spec.Requirements; r != nil {
		return r.Architecture
	}
	return ""
}

// architecture is the newest of a type's as Kubernetes names it: types with 32 bits have 64 too.
func architecture(shape types.InstanceTypeInfo) string {
	if shape.ProcessorInfo != nil && slices.Contains(shape.ProcessorInfo.SupportedArchitectures, types.ArchitectureTypeArm64) {
		return "arm64"
	}
	return "amd64"
}

const (
	defaultMaxPods = 110 // the kubelet's
	mebi           = 1 << 20
	// overhead is the share of an instance's memory that its hypervisor, firmware and kernel keep.
	overhead = 0.075
	// evictionMemory is what the kubelet keeps free.
	evictionMemory = 100 * mebi
)

// allocatable estimates what pods can use of a node: what its type has, less what the kubelet and the system reserve for
// themselves on the nodes of EKS: CPU by a falling share of each core, and memory by the pods that the network interfaces
// have addresses for, or that the pool says.
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

// podsOf returns how many pods a node of a type takes, as the pool says.
func podsOf(shape types.InstanceTypeInfo, maxPods intstr.IntOrString) int64 {
	if maxPods.String() == v1alpha1.MaxPodsENI {
		return addresses(shape)
	}
	n, err := strconv.ParseInt(maxPods.String(), 10, 32)
	if err != nil {
		return defaultMaxPods // the CRD lets nothing else through
	}
	return n
}

// addresses returns for how many pods a type has addresses on its network interfaces: of each one is the interface's own,
// and two pods share the host's. The VPC CNI uses the interfaces of the default network card alone.
func addresses(shape types.InstanceTypeInfo) int64 {
	network := shape.NetworkInfo
	if network == nil || network.MaximumNetworkInterfaces == nil || network.Ipv4AddressesPerInterface == nil {
		return defaultMaxPods
	}
	interfaces := int64(*network.MaximumNetworkInterfaces)
	for _, card := range network.NetworkCards {
		if aws.ToInt32(card.NetworkCardIndex) == aws.ToInt32(network.DefaultNetworkCardIndex) && card.MaximumNetworkInterfaces != nil {
			interfaces = int64(*card.MaximumNetworkInterfaces)
		}
	}
	return interfaces*(int64(*network.Ipv4AddressesPerInterface)-1) + 2
}

func reservedMemory(pods int64) int64 { return (255 + 11*pods) * mebi }

// reservedCPU returns thousandths of a core: 6% of the first, 1% of the second, 0.5% of the next two, 0.25% of the others.
func reservedCPU(cores int64) int64 {
	tenths := 600*min(cores, 1) + 100*clamp(cores-1, 1) + 50*clamp(cores-2, 2) + 25*max(0, cores-4)
	return tenths / 10
}

func clamp(n, most int64) int64 { return max(0, min(n, most)) }

package ec2

import (
	"cmp"
	"context"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// catalog returns the offers of a pool: its instance types in its subnets.
type catalog struct {
	types    *instanceTypes
	volume   *podVolume
	prices   *priceList
	spec     v1alpha1.EC2Provider
	template v1alpha1.NodeTemplate
}

func newCatalog(client *client, quotes *pricing.Client, o Options) *catalog {
	return &catalog{
		types:  &instanceTypes{client: client, spec: o.Spec, zones: o.zones(), now: o.Now},
		volume: &podVolume{client: client, template: o.Spec.LaunchTemplate, version: o.Spec.LaunchTemplateVersion},
		prices: &priceList{
			client: client, pricing: quotes, file: o.Prices,
			region: o.Spec.Region, zones: o.zones(), useSpot: o.Spot, now: o.Now,
		},
		spec: o.Spec, template: o.Template,
	}
}

// offers returns each instance type in each subnet where EC2 offers it.
func (c *catalog) offers(ctx context.Context) ([]provider.Offer, error) {
	if c.spec.Requirements != nil {
		return c.byPrice(ctx)
	}
	shapes, err := c.types.named(ctx)
	if err != nil {
		return nil, err
	}
	volume, err := c.volume.size(ctx)
	if err != nil {
		return nil, err
	}
	return c.of(c.spec.InstanceTypes, shapes, volume), nil
}

// byPrice returns the types that meet the requirements, the cheapest first. Prices are read last: offers need none.
func (c *catalog) byPrice(ctx context.Context) ([]provider.Offer, error) {
	found, err := c.types.selected(ctx)
	if err != nil {
		return nil, err
	}
	volume, err := c.volume.size(ctx)
	if err != nil {
		return nil, err
	}
	price, why := c.prices.read(ctx)
	names := found.ranked(func(name string) *float64 { return c.prices.cheapest(name, price) }, maxTypes)
	var offers []provider.Offer
	for _, o := range c.of(names, found.shapes, volume) {
		if found.zones[o.InstanceType][o.Zone] {
			o.Price, o.PriceErr = price(o.InstanceType, o.Zone), why
			offers = append(offers, o)
		}
	}
	return offers, nil
}

// of returns the offers of types, in all subnets, for nodes with a volume of that many GiB.
func (c *catalog) of(names []string, shapes map[string]types.InstanceTypeInfo, volume int64) []provider.Offer {
	var offers []provider.Offer
	for _, name := range names {
		shape := shapes[name]
		allocatable := allocatable(shape, c.spec.MaxPods)
		allocatable[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(ephemeralStorage(volume), resource.BinarySI)
		maps.Copy(allocatable, devices(shape))
		for resource, quantity := range c.template.Allocatable {
			allocatable[corev1.ResourceName(resource)] = quantity
		}
		for _, subnet := range c.spec.Subnets {
			offers = append(offers, provider.Offer{
				Offer:       fleet.Offer{Zone: subnet.Zone, Subnet: subnet.ID, InstanceType: name},
				Allocatable: allocatable.DeepCopy(), Labels: c.labels(shape, subnet.Zone), Quota: quotaOf(name, shape),
			})
		}
	}
	return offers
}

// labels returns the labels that a node of a type in a zone will have.
func (c *catalog) labels(shape types.InstanceTypeInfo, zone string) map[string]string {
	labels := map[string]string{
		corev1.LabelTopologyZone:       zone,
		corev1.LabelTopologyRegion:     c.spec.Region,
		corev1.LabelInstanceTypeStable: string(shape.InstanceType),
		corev1.LabelArchStable:         architecture(shape),
		corev1.LabelOSStable:           string(corev1.Linux),
	}
	if r := c.spec.Requirements; r != nil {
		labels[corev1.LabelArchStable] = cmp.Or(r.Architecture, architecture(shape))
	}
	maps.Copy(labels, c.template.Labels)
	return labels
}

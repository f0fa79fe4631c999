package ec2

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/prices"
)

// Options configure a [Provider].
type Options struct {
	// Cluster identifies the cluster of the pool, globally and permanently: the UID of its namespace kube-system. Cluster
	// and Pool, the name of the pool, are the values of the tags that identify the pool's instances.
	Cluster, Pool string
	Spec          v1alpha1.EC2Provider
	// MaxPrice caps the price of a Spot instance, in US dollars per hour; "" is the On-Demand price.
	MaxPrice string
	// Template declares properties of new nodes: labels, and the resources that pods can use.
	Template v1alpha1.NodeTemplate
	// Spot reports that the pool has Spot instances, so that Spot prices rank types too.
	Spot bool
	// Prices are read from a file; nil has the provider query AWS where prices rank types.
	Prices prices.Prices

	// Limits are shared by all providers of a process; nil creates limits with DefaultShare.
	Limits *Limits
	// Load changes the SDK's configuration; by default credentials come from the AWS default chain.
	Load []func(*config.LoadOptions) error
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	retryDelay time.Duration // longest wait before a second try; 0 is maxRetryDelay
}

// withDefaults returns the options with every default filled in.
func (o Options) withDefaults() Options {
	o.Spec.Default()
	if o.Limits == nil {
		o.Limits = NewLimits(DefaultShare)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// sdk returns the SDK's configuration for the region of the pool.
func (o Options) sdk(ctx context.Context) (aws.Config, error) {
	load := append([]func(*config.LoadOptions) error{config.WithRegion(o.Spec.Region)}, o.Load...)
	loaded, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("set up the AWS SDK: %w", err)
	}
	return loaded, nil
}

// tagPrefix begins the keys of the tags that identify instances.
const tagPrefix = "foresail.dev/"

// identity returns the tags of the pool's instances.
func (o Options) identity() identity {
	return identity{prefix: tagPrefix, cluster: o.Cluster, pool: o.Pool, extra: o.Spec.Tags}
}

// zones returns the zones of the pool's subnets.
func (o Options) zones() []string {
	var out []string
	for _, s := range o.Spec.Subnets {
		out = append(out, s.Zone)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

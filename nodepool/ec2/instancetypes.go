package ec2

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
)

const (
	describeTypes     = "DescribeInstanceTypes"
	describeOfferings = "DescribeInstanceTypeOfferings"

	// typesFor is how long the types that meet requirements are cached: new ones appear a few times a year.
	typesFor = 12 * time.Hour
	// typesPage and offeringsPage are the largest pages that EC2 returns.
	typesPage, offeringsPage = 100, 1000
)

// instanceTypes reads the instance types of a pool, which are named or meet requirements, and caches them. Its methods
// may be called from any goroutine.
type instanceTypes struct {
	client *client
	spec   v1alpha1.EC2Provider
	zones  []string
	now    func() time.Time

	mu sync.Mutex
	// fixed are the named types, which never change; nil until they were read.
	fixed map[string]types.InstanceTypeInfo
	// found are the types that meet the requirements; nil until they were read.
	found *selection
}

// named returns the types that the pool names, by name.
func (t *instanceTypes) named(ctx context.Context) (map[string]types.InstanceTypeInfo, error) {
	t.mu.Lock()
	known := t.fixed
	t.mu.Unlock()
	if known != nil {
		return known, nil
	}
	shapes, err := t.readNamed(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fixed = shapes
	return shapes, nil
}

func (t *instanceTypes) readNamed(ctx context.Context) (map[string]types.InstanceTypeInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	input := &ec2.DescribeInstanceTypesInput{}
	for _, name := range t.spec.InstanceTypes {
		input.InstanceTypes = append(input.InstanceTypes, types.InstanceType(name))
	}
	shapes, err := t.describe(ctx, input)
	if err != nil {
		return nil, err
	}
	for _, name := range t.spec.InstanceTypes {
		if _, ok := shapes[name]; !ok {
			return nil, &provider.Error{Class: provider.Invalid, Op: describeTypes,
				Err: fmt.Errorf("EC2 returns nothing for the instance type %q", name)}
		}
	}
	return shapes, nil
}

// meeting returns the names of the types that meet the requirements; nil if these were not read yet.
func (t *instanceTypes) meeting() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.found.names()
}

// selected returns the types that meet the requirements, at most typesFor old.
func (t *instanceTypes) selected(ctx context.Context) (*selection, error) {
	now := t.now()
	t.mu.Lock()
	known := t.found
	t.mu.Unlock()
	if known != nil && now.Sub(known.at) < typesFor {
		return known, nil
	}
	found, err := t.readSelected(ctx)
	if err != nil {
		return nil, err
	}
	found.at = now
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found = found
	return found, nil
}

func (t *instanceTypes) readSelected(ctx context.Context) (*selection, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	requirements := t.spec.Requirements
	shapes, err := t.describe(ctx, &ec2.DescribeInstanceTypesInput{
		MaxResults: aws.Int32(typesPage), Filters: filters(requirements),
	}, patient)
	if err != nil {
		return nil, err
	}
	found := &selection{shapes: map[string]types.InstanceTypeInfo{}}
	for name, shape := range shapes {
		if meets(shape, requirements) {
			found.shapes[name] = shape
		}
	}
	if found.zones, err = t.offerings(ctx); err != nil {
		return nil, err
	}
	for name := range found.shapes {
		if len(found.zones[name]) > 0 {
			return found, nil
		}
	}
	return nil, &provider.Error{Class: provider.Invalid, Op: describeTypes,
		Err: fmt.Errorf("provider.ec2.requirements: no instance type that EC2 offers in %s meets them: %s",
			strings.Join(t.zones, ", "), requirements)}
}

// patient retries reads of large answers more often: a broken one would discard all pages read so far.
func patient(o *ec2.Options) { o.RetryMaxAttempts = 5 }

// describe returns types by name.
func (t *instanceTypes) describe(
	ctx context.Context, input *ec2.DescribeInstanceTypesInput, options ...func(*ec2.Options),
) (map[string]types.InstanceTypeInfo, error) {
	shapes := map[string]types.InstanceTypeInfo{}
	pages := ec2.NewDescribeInstanceTypesPaginator(t.client, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, options...)
		if err != nil {
			return nil, classify(describeTypes, err)
		}
		for _, shape := range page.InstanceTypes {
			shapes[string(shape.InstanceType)] = shape
		}
	}
	return shapes, nil
}

// offerings returns the zones of the pool in which each type is offered.
func (t *instanceTypes) offerings(ctx context.Context) (map[string]map[string]bool, error) {
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(t.client, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(offeringsPage),
		Filters: []types.Filter{{Name: aws.String("location"), Values: t.zones}},
	})
	out := map[string]map[string]bool{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, patient)
		if err != nil {
			return nil, classify(describeOfferings, err)
		}
		for _, o := range page.InstanceTypeOfferings {
			name := string(o.InstanceType)
			if out[name] == nil {
				out[name] = map[string]bool{}
			}
			out[name][aws.ToString(o.Location)] = true
		}
	}
	return out, nil
}

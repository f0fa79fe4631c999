package ec2

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
)

const (
	// maxTypes bounds how many of the types that meet requirements are offered.
	maxTypes = 60
	// typesFor is how long it is not asked again which types meet requirements: new ones appear some times a year.
	typesFor = 12 * time.Hour
	// The most that an answer can have.
	typesPage     = 100
	offeringsPage = 1000
)

// selection is the types that meet the requirements of a pool.
type selection struct {
	at     time.Time // when it was asked for
	shapes map[string]types.InstanceTypeInfo
	zones  map[string]map[string]bool // where each of them is offered
}

// names returns the types in order, nil for no selection.
func (s *selection) names() []string {
	if s == nil {
		return nil
	}
	out := make([]string, 0, len(s.shapes))
	for name := range s.shapes {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// selected returns the types that meet the requirements, as they were found within typesFor.
func (p *Provider) selected(ctx context.Context) (*selection, error) {
	now := p.options.Now()
	p.mu.Lock()
	known := p.selection
	p.mu.Unlock()
	if known != nil && now.Sub(known.at) < typesFor {
		return known, nil
	}
	found, err := p.find(ctx)
	if err != nil {
		return nil, err
	}
	found.at = now
	p.mu.Lock()
	defer p.mu.Unlock()
	p.selection = found
	return found, nil
}

// find asks which types meet the requirements, and in which zones of the pool they are offered.
func (p *Provider) find(ctx context.Context) (*selection, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	requirements := p.options.Spec.Requirements
	found := &selection{shapes: map[string]types.InstanceTypeInfo{}}
	pages := ec2.NewDescribeInstanceTypesPaginator(p.client, &ec2.DescribeInstanceTypesInput{
		MaxResults: aws.Int32(typesPage), Filters: filters(requirements),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, patient)
		if err != nil {
			return nil, classify("DescribeInstanceTypes", err)
		}
		for _, shape := range page.InstanceTypes {
			if meets(shape, requirements) {
				found.shapes[string(shape.InstanceType)] = shape
			}
		}
	}
	var err error
	if found.zones, err = p.offerings(ctx); err != nil {
		return nil, err
	}
	for name := range found.shapes {
		if len(found.zones[name]) > 0 {
			return found, nil
		}
	}
	return nil, &provider.Error{Class: provider.Invalid, Op: "DescribeInstanceTypes",
		Err: fmt.Errorf("provider.ec2.requirements: no instance type that EC2 offers in %s meets them: %s", strings.Join(p.zones(), ", "), requirements)}
}

// patient has a read tried more often than others: its answers are large, and one that breaks off would cost all pages before.
func patient(o *ec2.Options) { o.RetryMaxAttempts = 5 }

// filters leave out what would be most of the answer.
func filters(r *v1alpha1.EC2Requirements) []types.Filter {
	is := func(name, value string) types.Filter {
		return types.Filter{Name: aws.String(name), Values: []string{value}}
	}
	out := []types.Filter{is("processor-info.supported-architecture", string(architectureOf(r)))}
	if len(r.AllowedTypes) > 0 { // EC2 knows the * as well
		out = append(out, types.Filter{Name: aws.String("instance-type"), Values: r.AllowedTypes})
	}
	if r.PreviousGeneration == v1alpha1.EC2Excluded {
		out = append(out, is("current-generation", "true"))
	}
	if r.BareMetal == v1alpha1.EC2Excluded {
		out = append(out, is("bare-metal", "false"))
	}
	return out
}

// architectureOf is as EC2 names it. Types of macOS have names of their own.
func architectureOf(r *v1alpha1.EC2Requirements) types.ArchitectureType {
	if r.Architecture == "arm64" {
		return types.ArchitectureTypeArm64
	}
	return types.ArchitectureTypeX8664
}

// offerings returns the zones of the pool that each type is offered in.
func (p *Provider) offerings(ctx context.Context) (map[string]map[string]bool, error) {
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(p.client, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(offeringsPage),
		Filters: []types.Filter{{Name: aws.String("location"), Values: p.zones()}},
	})
	out := map[string]map[string]bool{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, patient)
		if err != nil {
			return nil, classify("DescribeInstanceTypeOfferings", err)
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

// zones returns the zones of the pool's subnets.
func (p *Provider) zones() []string {
	var out []string
	for _, s := range p.options.Spec.Subnets {
		out = append(out, s.Zone)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// meets tells whether a type has what is required. What EC2 does not tell of it, it does not have.
func meets(shape types.InstanceTypeInfo, r *v1alpha1.EC2Requirements) bool {
	name := string(shape.InstanceType)
	return meetsSize(shape, r) && shape.ProcessorInfo != nil &&
		slices.Contains(shape.ProcessorInfo.SupportedArchitectures, architectureOf(r)) &&
		slices.Contains(shape.SupportedUsageClasses, types.UsageClassTypeOnDemand) &&
		(len(r.AllowedTypes) == 0 || matchesAny(r.AllowedTypes, name)) && !matchesAny(r.ExcludedTypes, name) &&
		(r.MinGeneration == nil || generation(name) >= int(*r.MinGeneration)) &&
		includes(r.PreviousGeneration, !aws.ToBool(shape.CurrentGeneration)) &&
		includes(r.BurstablePerformance, aws.ToBool(shape.BurstablePerformanceSupported)) &&
		includes(r.BareMetal, aws.ToBool(shape.BareMetal)) &&
		includes(r.Accelerators, accelerated(shape))
}

func meetsSize(shape types.InstanceTypeInfo, r *v1alpha1.EC2Requirements) bool {
	if shape.VCpuInfo == nil || shape.MemoryInfo == nil {
		return false
	}
	cores, memory := aws.ToInt32(shape.VCpuInfo.DefaultVCpus), aws.ToInt64(shape.MemoryInfo.SizeInMiB)*mebi
	return cores >= r.VCPU.Min && (r.VCPU.Max == nil || cores <= *r.VCPU.Max) &&
		memory >= r.Memory.Min.Value() && (r.Memory.Max == nil || memory <= r.Memory.Max.Value())
}

func accelerated(shape types.InstanceTypeInfo) bool {
	return shape.GpuInfo != nil || shape.FpgaInfo != nil || shape.InferenceAcceleratorInfo != nil || shape.NeuronInfo != nil ||
		shape.MediaAcceleratorInfo != nil
}

func includes(i v1alpha1.EC2Inclusion, has bool) bool {
	switch i {
	case v1alpha1.EC2Included:
		return true
	case v1alpha1.EC2Required:
		return has
	}
	return !has
}

var family = regexp.MustCompile(`^[a-z]+([0-9]+)`)

// generation returns that of a type's name, such as 5 of m5a.large, 0 if the name has none.
func generation(name string) int {
	found := family.FindStringSubmatch(name)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1]) // digits; too many of them are no generation
	return n
}

// matchesAny tells whether a name is one of those in which * stands for any characters.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return wildcard(pattern, name) })
}

func wildcard(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}

// size is what types have in common that do equally well for pods.
type size struct {
	cores  int32
	memory int64
	device string
}

func sizeOf(shape types.InstanceTypeInfo) size {
	s := size{cores: aws.ToInt32(shape.VCpuInfo.DefaultVCpus), memory: aws.ToInt64(shape.MemoryInfo.SizeInMiB)}
	var all []string
	for name, quantity := range devices(shape) {
		all = append(all, string(name)+"="+quantity.String())
	}
	slices.Sort(all)
	s.device = strings.Join(all, ",")
	return s
}

// weight compares sizes where prices are not known: a GiB of memory costs about as much as an eighth of a virtual CPU.
func (s size) weight() int64 { return int64(s.cores)*8*1024 + s.memory }

// ranked returns up to most of the selected types, the cheapest first: of each size the cheapest before the second of any,
// so that a pod which only a large one could run has one. Types whose price is not known come after the others, by size.
func (s *selection) ranked(price func(name string) *float64, most int) []string {
	var names []string
	for _, name := range s.names() {
		if len(s.zones[name]) > 0 {
			names = append(names, name)
		}
	}
	cost := func(name string) float64 {
		if usd := price(name); usd != nil {
			return *usd
		}
		return math.Inf(1)
	}
	byPrice := func(a, b string) int {
		return cmp.Or(cmp.Compare(cost(a), cost(b)), cmp.Compare(sizeOf(s.shapes[a]).weight(), sizeOf(s.shapes[b]).weight()),
			cmp.Compare(generation(b), generation(a)), cmp.Compare(a, b))
	}
	slices.SortFunc(names, byPrice)
	rank, before := map[string]int{}, map[size]int{}
	for _, name := range names {
		of := sizeOf(s.shapes[name])
		rank[name] = before[of]
		before[of]++
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	names = names[:min(len(names), most)]
	slices.SortFunc(names, byPrice)
	return names
}

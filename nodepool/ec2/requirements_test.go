package ec2

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// required returns requirements with their defaults; maxCores 0 = no maximum.
func required(
	cores, maxCores int32, memory string, change ...func(*v1alpha1.EC2Requirements),
) *v1alpha1.EC2Requirements {
	r := &v1alpha1.EC2Requirements{
		VCPU: v1alpha1.EC2CPURange{Min: cores}, Memory: v1alpha1.EC2MemoryRange{Min: resource.MustParse(memory)},
	}
	if maxCores > 0 {
		r.VCPU.Max = &maxCores
	}
	spec := v1alpha1.EC2Provider{Requirements: r}
	spec.Default()
	for _, f := range change {
		f(r)
	}
	return r
}

// allows limits requirements to some types: moto takes seconds to return all.
func allows(patterns ...string) func(*v1alpha1.EC2Requirements) {
	return func(r *v1alpha1.EC2Requirements) { r.AllowedTypes = patterns }
}

// typeOf returns a type that meets most requirements.
func typeOf(name string, cores int32, gibibytes int64, change ...func(*types.InstanceTypeInfo)) types.InstanceTypeInfo {
	shape := types.InstanceTypeInfo{
		InstanceType: types.InstanceType(name), CurrentGeneration: aws.Bool(true),
		VCpuInfo:   &types.VCpuInfo{DefaultVCpus: aws.Int32(cores)},
		MemoryInfo: &types.MemoryInfo{SizeInMiB: aws.Int64(gibibytes * 1024)},
		ProcessorInfo: &types.ProcessorInfo{
			SupportedArchitectures: []types.ArchitectureType{types.ArchitectureTypeX8664},
		},
		SupportedUsageClasses: []types.UsageClassType{types.UsageClassTypeOnDemand, types.UsageClassTypeSpot},
	}
	for _, f := range change {
		f(&shape)
	}
	return shape
}

func TestMeets(t *testing.T) {
	including := func(kinds ...v1alpha1.EC2Kind) func(*v1alpha1.EC2Requirements) {
		return func(r *v1alpha1.EC2Requirements) { r.Include = kinds }
	}
	plain := required(2, 8, "4Gi", func(r *v1alpha1.EC2Requirements) { r.Memory.Max = new(resource.MustParse("16Gi")) })
	burstable := func(s *types.InstanceTypeInfo) { s.BurstablePerformanceSupported = aws.Bool(true) }
	bare := func(s *types.InstanceTypeInfo) { s.BareMetal = aws.Bool(true) }
	gpu := func(s *types.InstanceTypeInfo) { s.GpuInfo = &types.GpuInfo{} }
	change := func(f func(*v1alpha1.EC2Requirements)) *v1alpha1.EC2Requirements {
		r := plain.DeepCopy()
		f(r)
		return r
	}
	for name, c := range map[string]struct {
		shape types.InstanceTypeInfo
		r     *v1alpha1.EC2Requirements
		want  bool
	}{
		"the minimum":       {typeOf("c5.large", 2, 4), plain, true},
		"the maximum":       {typeOf("c5.2xlarge", 8, 16), plain, true},
		"too few CPUs":      {typeOf("x.small", 1, 4), plain, false},
		"too many CPUs":     {typeOf("c5.4xlarge", 16, 16), plain, false},
		"too little memory": {typeOf("c5.large", 2, 3), plain, false},
		"too much memory":   {typeOf("r5.xlarge", 4, 32), plain, false},
		"no maximum":        {typeOf("m5.24xlarge", 96, 384), required(2, 0, "4Gi"), true},
		"unknown size": {
			typeOf("m5.large", 2, 8, func(s *types.InstanceTypeInfo) { s.VCpuInfo = nil }), plain, false,
		},
		"unknown processor": {
			typeOf("m5.large", 2, 8, func(s *types.InstanceTypeInfo) { s.ProcessorInfo = nil }), plain, false,
		},
		"another architecture": {
			typeOf("m5.large", 2, 8), change(func(r *v1alpha1.EC2Requirements) { r.Architecture = "arm64" }), false,
		},
		"only in capacity blocks": {
			typeOf("m5.large", 2, 8, func(s *types.InstanceTypeInfo) { s.SupportedUsageClasses = nil }), plain, false,
		},
		"allowed": {
			typeOf("m5.large", 2, 8), change(func(r *v1alpha1.EC2Requirements) { r.AllowedTypes = []string{"c*", "m5.*"} }),
			true,
		},
		"not allowed": {
			typeOf("m5a.large", 2, 8), change(func(r *v1alpha1.EC2Requirements) { r.AllowedTypes = []string{"c*", "m5.*"} }),
			false,
		},
		"excluded": {
			typeOf("m5.large", 2, 8), change(func(r *v1alpha1.EC2Requirements) { r.ExcludedTypes = []string{"m5.large"} }),
			false,
		},
		"a generation": {
			typeOf("m5.large", 2, 8), change(func(r *v1alpha1.EC2Requirements) { r.MinGeneration = new(int32(5)) }), true,
		},
		"an earlier generation": {
			typeOf("m4.large", 2, 8), change(func(r *v1alpha1.EC2Requirements) { r.MinGeneration = new(int32(5)) }), false,
		},
		"no generation": {
			typeOf("u-6tb1.large", 2, 8), change(func(r *v1alpha1.EC2Requirements) { r.MinGeneration = new(int32(1)) }), false,
		},
		"burstable": {typeOf("t3.medium", 2, 4, burstable), plain, false},
		"burstable included": {
			typeOf("t3.medium", 2, 4, burstable), change(including(v1alpha1.EC2BareMetal, v1alpha1.EC2Burstable)), true,
		},
		"another kind included":    {typeOf("t3.medium", 2, 4, burstable), change(including(v1alpha1.EC2BareMetal)), false},
		"included, but of no kind": {typeOf("m5.large", 2, 8), change(including(v1alpha1.EC2Burstable)), true},
		"bare metal":               {typeOf("m5.metal", 2, 8, bare), plain, false},
		"bare metal included":      {typeOf("m5.metal", 2, 8, bare), change(including(v1alpha1.EC2BareMetal)), true},
		"a GPU":                    {typeOf("g4dn.xlarge", 4, 16, gpu), plain, false},
		"a GPU included":           {typeOf("g4dn.xlarge", 4, 16, gpu), change(including(v1alpha1.EC2Accelerated)), true},
	} {
		require.Equal(t, c.want, meets(c.shape, c.r), name)
	}
}

func TestMatchesAny(t *testing.T) {
	for pattern, names := range map[string][2][]string{
		"m5.large":  {{"m5.large"}, {"m5.larger", "xm5.large", "m5"}},
		"m5.*":      {{"m5.large", "m5."}, {"m5a.large"}},
		"*.metal*":  {{"m5.metal", "c6g.metal-24xl"}, {"m5.large"}},
		"*":         {{"m5.large"}, nil},
		"m*d.*xl*":  {{"m5d.2xlarge"}, {"m5d.large", "m5.2xlarge"}},
		"a*a":       {{"aa", "aba"}, {"a", "ab"}},
		"m*5*large": {{"m5.large", "m55.xlarge"}, {"m5.xl"}},
	} {
		for _, name := range names[0] {
			require.True(t, matchesAny([]string{pattern}, name), "%s %s", pattern, name)
		}
		for _, name := range names[1] {
			require.False(t, matchesAny([]string{pattern}, name), "%s %s", pattern, name)
		}
	}
}

func TestGeneration(t *testing.T) {
	for name, want := range map[string]int{
		"m5.large": 5, "c7gn.2xlarge": 7, "im4gn.large": 4, "t2.micro": 2, "u-6tb1.metal": 0, "u7i-12tb.224xlarge": 7,
		"": 0, "m99999999999999999999.x": 9223372036854775807,
	} {
		require.Equal(t, want, generation(name), name)
	}
}

// A pod that needs a large type gets one, however many small ones are cheaper.
func TestRankedHasEverySize(t *testing.T) {
	s := &selection{shapes: map[string]types.InstanceTypeInfo{}, zones: map[string]map[string]bool{}}
	usd := map[string]float64{}
	add := func(shape types.InstanceTypeInfo, price float64) {
		name := string(shape.InstanceType)
		s.shapes[name], s.zones[name] = shape, map[string]bool{"a": true}
		if price > 0 {
			usd[name] = price
		}
	}
	price := func(name string) *float64 {
		if v, ok := usd[name]; ok {
			return &v
		}
		return nil
	}
	add(typeOf("a1.large", 2, 4), 0.04)
	add(typeOf("c5.large", 2, 4), 0.05)
	add(typeOf("c6.large", 2, 4), 0.06)
	add(typeOf("m5.large", 2, 8), 0.055)
	add(typeOf("m5.8xlarge", 32, 128), 1.5)
	add(typeOf("m6.8xlarge", 32, 128), 0) // without a price
	add(typeOf("m7.large", 2, 8), 0)
	require.Equal(
		t, []string{"a1.large", "c5.large", "m5.large", "c6.large", "m5.8xlarge", "m7.large", "m6.8xlarge"},
		s.ranked(price, 100),
	)
	require.Equal(t, []string{"a1.large", "m5.large", "m5.8xlarge"}, s.ranked(price, 3))
	require.Equal(t, []string{"a1.large", "c5.large", "m5.large", "m5.8xlarge"}, s.ranked(price, 4))
	clear(usd)
	require.Equal(
		t, []string{"c6.large", "c5.large", "a1.large", "m7.large", "m5.large", "m6.8xlarge", "m5.8xlarge"},
		s.ranked(price, 100), "by size, newest first",
	)
	s.zones["c6.large"] = nil
	require.NotContains(t, s.ranked(price, 100), "c6.large", "no zone offers it")
}

// byRequirements returns the options of a pool with requirements.
func (c cloud) byRequirements(r *v1alpha1.EC2Requirements) Options {
	o := c.options("workers")
	o.Spec.InstanceTypes, o.Spec.Requirements = nil, r
	return o
}

func testRequirements(t *testing.T, c cloud) {
	now := time.Now()
	o := c.byRequirements(required(2, 4, "4Gi", func(r *v1alpha1.EC2Requirements) {
		r.AllowedTypes, r.ExcludedTypes = []string{"m5*", "c6g.*", "t3.*", "r5*"}, []string{
			"r5.large", "*d*", "*n*", "*a.*", "*b.*",
		}
	}))
	o.Now = func() time.Time { return now }
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	for range 2 {
		offers, err := p.Offers(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"m5.large", "m5.xlarge", "r5.xlarge"}, typesOf(offers), "by size, without prices")
		require.Len(t, offers, 9)
		require.Equal(t, "amd64", offers[0].Labels[corev1.LabelArchStable])
		require.Equal(t, "m5.large", offers[0].Labels[corev1.LabelInstanceTypeStable])
	}
	pages := c.pages("DescribeInstanceTypes")
	require.Greater(t, pages, 1, "in pages")
	require.Equal(t, "m5*", c.Calls("DescribeInstanceTypes")[0].Params.Get("Filter.2.Value.1"))
	require.Greater(t, len(c.Calls("DescribeInstanceTypeOfferings")), 1, "in pages")
	c.Forget()
	now = now.Add(typesFor)
	_, err = p.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, pages, c.pages("DescribeInstanceTypes"), "they are read again after typesFor")
}

func typesOf(offers []provider.Offer) []string {
	var names []string
	for _, o := range offers {
		names = append(names, o.InstanceType)
	}
	return slices.Compact(names)
}

func testRequirementsOfARM(t *testing.T, c cloud) {
	p, err := New(t.Context(), c.byRequirements(required(1, 2, "2Gi", func(r *v1alpha1.EC2Requirements) {
		r.Architecture, r.AllowedTypes = "arm64", []string{"t*"}
		r.Include = []v1alpha1.EC2Kind{v1alpha1.EC2Burstable}
	})))
	require.NoError(t, err)
	offers, err := p.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"t4g.small", "t4g.medium", "t4g.large"}, typesOf(offers))
	require.Equal(t, "arm64", offers[0].Labels[corev1.LabelArchStable])
}

// testRequirementsBounded offers sixty types, with every size.
func testRequirementsBounded(t *testing.T, c cloud) {
	p, err := New(t.Context(), c.byRequirements(required(2, 0, "4Gi", allows("c5*", "m5*", "r5*"))))
	require.NoError(t, err)
	offers, err := p.Offers(t.Context())
	require.NoError(t, err)
	names := typesOf(offers)
	require.Len(t, names, maxTypes)
	require.True(
		t, slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".24xlarge") }), names,
	)
	require.Equal(t, offers, mustOffers(t, p), "the order is stable")
}

func mustOffers(t *testing.T, p *Provider) []provider.Offer {
	t.Helper()
	offers, err := p.Offers(t.Context())
	require.NoError(t, err)
	return offers
}

func testRequirementsThatNothingMeets(t *testing.T, c cloud) {
	p, err := New(t.Context(), c.byRequirements(required(1000, 0, "4Gi", allows("m5.*"))))
	require.NoError(t, err)
	_, err = p.Offers(t.Context())
	requireClass(t, provider.Invalid, err)
	require.ErrorContains(t, err, "provider.ec2.requirements: no instance type that EC2 offers in "+
		"eu-central-1a, eu-central-1b, eu-central-1c meets them: types of amd64 with 1000 vCPU or more, 4Gi or more")
}

func testRequirementsRefused(t *testing.T, c cloud) {
	p, err := New(t.Context(), c.byRequirements(required(2, 4, "4Gi", allows("m5.*"))))
	require.NoError(t, err)
	c.Inject(
		awstest.Fault{
			Operation: "DescribeInstanceTypeOfferings", Times: 1, Do: awstest.Fail, Status: http.StatusForbidden,
			Code: "UnauthorizedOperation",
		},
	)
	_, err = p.Offers(t.Context())
	requireClass(t, provider.Invalid, err)
	require.ErrorContains(t, err, "DescribeInstanceTypeOfferings")
	require.NotEmpty(t, mustOffers(t, p))
}

// testOutdatedByRequirements: only instances whose type does not meet the requirements are
// outdated, not instances whose type is no longer offered because of prices.
func testOutdatedByRequirements(t *testing.T, c cloud) {
	first := c.start(t, c.provider(t, "workers")) // a t3.small
	burstable := func(r *v1alpha1.EC2Requirements) { r.Include = []v1alpha1.EC2Kind{v1alpha1.EC2Burstable} }
	p, err := New(t.Context(), c.byRequirements(required(1, 0, "1Gi", allows("t*"), burstable)))
	require.NoError(t, err)
	mustOffers(t, p)
	require.Empty(t, listed(t, p)[first].Outdated)

	p, err = New(t.Context(), c.byRequirements(required(2, 0, "4Gi", allows("t*", "m5.*"))))
	require.NoError(t, err)
	require.Empty(t, listed(t, p)[first].Outdated, "the types are not read yet")
	mustOffers(t, p)
	require.Equal(
		t, "its instance type t3.small does not meet the pool's requirements any more", listed(t, p)[first].Outdated,
	)
}

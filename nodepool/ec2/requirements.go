package ec2

import (
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/api/v1alpha1"
)

// filters returns filters that leave out most types that do not meet requirements; [meets] checks the others.
func filters(r *v1alpha1.EC2Requirements) []types.Filter {
	is := func(name, value string) types.Filter {
		return types.Filter{Name: aws.String(name), Values: []string{value}}
	}
	out := []types.Filter{is("processor-info.supported-architecture", string(architectureOf(r)))}
	if len(r.AllowedTypes) > 0 { // EC2 supports the * too
		out = append(out, types.Filter{Name: aws.String("instance-type"), Values: r.AllowedTypes})
	}
	if !slices.Contains(r.Include, v1alpha1.EC2BareMetal) {
		out = append(out, is("bare-metal", "false"))
	}
	return out
}

// architectureOf returns the architecture as EC2 names it. Types for macOS have other names.
func architectureOf(r *v1alpha1.EC2Requirements) types.ArchitectureType {
	if r.Architecture == "arm64" {
		return types.ArchitectureTypeArm64
	}
	return types.ArchitectureTypeX8664
}

// meets reports whether a type meets requirements. A property that EC2 does not return is missing.
func meets(shape types.InstanceTypeInfo, r *v1alpha1.EC2Requirements) bool {
	return meetsSize(shape, r) && meetsName(string(shape.InstanceType), r) && shape.ProcessorInfo != nil &&
		slices.Contains(shape.ProcessorInfo.SupportedArchitectures, architectureOf(r)) &&
		slices.Contains(shape.SupportedUsageClasses, types.UsageClassTypeOnDemand) &&
		meetsKinds(shape, r.Include)
}

func meetsName(name string, r *v1alpha1.EC2Requirements) bool {
	return (len(r.AllowedTypes) == 0 || matchesAny(r.AllowedTypes, name)) && !matchesAny(r.ExcludedTypes, name) &&
		(r.MinGeneration == nil || generation(name) >= int(*r.MinGeneration))
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
	return shape.GpuInfo != nil || shape.FpgaInfo != nil || shape.InferenceAcceleratorInfo != nil ||
		shape.NeuronInfo != nil || shape.MediaAcceleratorInfo != nil
}

// meetsKinds reports whether each kind that a type is of is among those to include.
func meetsKinds(shape types.InstanceTypeInfo, include []v1alpha1.EC2Kind) bool {
	lacks := func(is bool, kind v1alpha1.EC2Kind) bool { return is && !slices.Contains(include, kind) }
	return !lacks(aws.ToBool(shape.BurstablePerformanceSupported), v1alpha1.EC2Burstable) &&
		!lacks(aws.ToBool(shape.BareMetal), v1alpha1.EC2BareMetal) &&
		!lacks(accelerated(shape), v1alpha1.EC2Accelerated)
}

var family = regexp.MustCompile(`^[a-z]+([0-9]+)`)

// generation returns the generation in a type's name, such as 5 for m5a.large; 0 if the name has none.
func generation(name string) int {
	found := family.FindStringSubmatch(name)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1]) // all digits; the largest int if there are too many
	return n
}

// matchesAny reports whether a name matches one of the patterns, in which * matches any characters. The CRD admits no
// other special characters.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	})
}

package ec2

import (
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// standard are the families that share one quota of virtual CPUs. Spot and On-Demand have one each.
const standard = "acdhimrtz"

// quotaOf returns what an instance type counts against. EC2 limits the virtual CPUs of families: one quota for the
// standard ones, one for G and VT, and one each for the others. P5 and later have one of their own where they are
// Spot. As a group too small only costs a further call, they have one here in both markets.
func quotaOf(kind string, shape types.InstanceTypeInfo) fleet.Quota {
	family := strings.ToLower(kind[:familyLength(kind)])
	generation := strings.TrimPrefix(strings.ToLower(kind), family)
	group := strings.ToUpper(family)
	switch {
	case family == "":
	case strings.HasPrefix(family, "inf"), strings.HasPrefix(family, "trn"), strings.HasPrefix(family, "hpc"),
		strings.HasPrefix(family, "dl"), strings.HasPrefix(family, "mac"):
	case strings.HasPrefix(family, "g"), family == "vt":
		group = "G and VT"
	case family == "p" && generation >= "5":
		group = "P5"
	case strings.ContainsRune(standard, rune(family[0])):
		group = "Standard"
	}
	q := fleet.Quota{Group: group}
	if shape.VCpuInfo != nil {
		q.VCPUs = int64(aws.ToInt32(shape.VCpuInfo.DefaultVCpus))
	}
	return q
}

// familyLength returns the length of the letters that a type begins with, such as those of m5.large or u-6tb1.metal.
func familyLength(kind string) int {
	n := strings.IndexFunc(kind, func(r rune) bool { return r < 'A' || r > 'z' || r > 'Z' && r < 'a' })
	if n < 0 {
		return len(kind)
	}
	return n
}

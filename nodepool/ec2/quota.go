package ec2

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/fleet"
)

// standard are the families that share one quota of virtual CPUs in each market.
const standard = "acdhimrtz"

// quotaOf returns the quota of an instance type. EC2 limits the virtual CPUs of families: one quota for the standard
// families, one for G and VT, and one for each other. P5 and later have a separate Spot quota. They are a group here in
// both markets: a group that is too small costs no more than another call.
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

// familyLength returns the number of letters that a type begins with, such as 1 for m5.large and u-6tb1.metal.
func familyLength(kind string) int {
	n := strings.IndexFunc(kind, func(r rune) bool { return r < 'A' || r > 'z' || r > 'Z' && r < 'a' })
	if n < 0 {
		return len(kind)
	}
	return n
}

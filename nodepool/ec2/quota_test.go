package ec2

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/fleet"
)

func TestQuotaOf(t *testing.T) {
	shape := types.InstanceTypeInfo{VCpuInfo: &types.VCpuInfo{DefaultVCpus: aws.Int32(8)}}
	for kind, group := range map[string]string{
		"a1.large": "Standard", "c6i.large": "Standard", "d3en.xlarge": "Standard", "h1.2xlarge": "Standard",
		"i4i.large":   "Standard",
		"im4gn.large": "Standard", "is4gen.large": "Standard", "m5.large": "Standard", "r7a.large": "Standard",
		"t3.micro": "Standard", "z1d.large": "Standard",
		"g4dn.xlarge": "G and VT", "gr6.4xlarge": "G and VT", "vt1.3xlarge": "G and VT", "p3.2xlarge": "P",
		"p4d.24xlarge": "P", "p5.48xlarge": "P5",
		"inf2.xlarge": "INF", "trn1.2xlarge": "TRN", "x2gd.large": "X", "f1.2xlarge": "F", "dl1.24xlarge": "DL",
		"hpc6a.48xlarge": "HPC",
		"u-6tb1.metal":   "U", "u7i-12tb.224xlarge": "U", "mac2.metal": "MAC", "": "",
	} {
		require.Equal(t, fleet.Quota{Group: group, VCPUs: 8}, quotaOf(kind, shape), kind)
	}
}

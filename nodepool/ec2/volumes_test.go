package ec2

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// storage returns the ephemeral storage of all offers.
func storage(t *testing.T, p *Provider) resource.Quantity {
	t.Helper()
	offers, err := p.Offers(t.Context())
	require.NoError(t, err)
	first := offers[0].Allocatable[corev1.ResourceEphemeralStorage]
	for _, o := range offers {
		require.Equal(t, first, o.Allocatable[corev1.ResourceEphemeralStorage])
	}
	return first
}

func volume(device string, gibi int32) types.LaunchTemplateBlockDeviceMappingRequest {
	ebs := &types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: types.VolumeTypeGp3}
	if gibi > 0 {
		ebs.VolumeSize = aws.Int32(gibi)
	}
	return types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: aws.String(device), Ebs: ebs}
}

// image is one of moto's images: its root is /dev/sda1 with 15 GiB.
const image = "ami-ekslinux"

// template creates a version of the launch template and makes it the default.
func (c cloud) template(t *testing.T, image string, volumes ...types.LaunchTemplateBlockDeviceMappingRequest) {
	t.Helper()
	client := ec2.NewFromConfig(c.Direct())
	created, err := client.CreateLaunchTemplateVersion(t.Context(), &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateId:   aws.String(c.network.Template),
		LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String(image), BlockDeviceMappings: volumes},
	})
	require.NoError(t, err)
	version := strconv.FormatInt(*created.LaunchTemplateVersion.VersionNumber, 10)
	_, err = client.ModifyLaunchTemplate(t.Context(), &ec2.ModifyLaunchTemplateInput{
		LaunchTemplateId: aws.String(c.network.Template), DefaultVersion: aws.String(version),
	})
	require.NoError(t, err)
}

func testStorage(t *testing.T, c cloud) {
	p := c.provider(t, "workers")
	for _, row := range []struct {
		name    string
		image   string
		volumes []types.LaunchTemplateBlockDeviceMappingRequest
		gibi    int64
	}{
		{"the image's", image, nil, 15},
		{
			"the template's", image,
			[]types.LaunchTemplateBlockDeviceMappingRequest{volume("/dev/sdf", 500), volume("/dev/sda1", 100)}, 100,
		},
		{
			"a template that changes the type alone", image,
			[]types.LaunchTemplateBlockDeviceMappingRequest{volume("/dev/sda1", 0)}, 15,
		},
		{"a template without an image", "", nil, defaultVolume},
		{
			"an image that is gone", "ami-0123456789abcdef0",
			[]types.LaunchTemplateBlockDeviceMappingRequest{volume("/dev/sda1", 100)}, defaultVolume,
		},
	} {
		c.template(t, row.image, row.volumes...)
		got := storage(t, p)
		require.Equal(t, ephemeralStorage(row.gibi), got.Value(), row.name)
	}
	require.Len(t, c.Calls("DescribeInstanceTypes"), 1, "types do not change")
}

// testStorageUnknown: without the permission to read templates the default applies.
func testStorageUnknown(t *testing.T, c cloud) {
	p := c.provider(t, "workers")
	for _, operation := range []string{"DescribeLaunchTemplateVersions", "DescribeImages"} {
		end := c.Inject(awstest.Fault{Operation: operation, Status: http.StatusForbidden, Code: "UnauthorizedOperation"})
		got := storage(t, p)
		require.Equal(t, ephemeralStorage(defaultVolume), got.Value(), operation)
		end()
		end = c.Inject(awstest.Fault{Operation: operation})
		_, err := p.Offers(t.Context())
		requireClass(t, provider.Unknown, err)
		end()
	}
}

func testStorageOverridden(t *testing.T, c cloud) {
	o := c.options("workers")
	o.Template = v1alpha1.NodeTemplate{
		Allocatable: map[string]resource.Quantity{"ephemeral-storage": resource.MustParse("200Gi")},
	}
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, resource.MustParse("200Gi"), storage(t, p))
}

// EKS nodes of Amazon Linux 2 with 20 GiB have 18242267924 bytes. ext4 leaves less than XFS.
func TestEphemeralStorageIsBelowTheKubelets(t *testing.T) {
	for gibi, ext4 := range map[int64]int64{
		8: 4096 * (2097152 - 58505), 20: 4096 * (5242880 - 126316),
		100: 4096 * (26214400 - 557842), 500: 4096 * (131072000 - 2337728),
	} {
		kubelet := ext4 - ext4/10 - 1<<30
		require.LessOrEqual(t, ephemeralStorage(gibi), kubelet)
		require.Greater(t, float64(ephemeralStorage(gibi)), 0.94*float64(kubelet), "but close to it")
	}
	require.LessOrEqual(t, ephemeralStorage(20), int64(18242267924))
	require.Zero(t, ephemeralStorage(1), "at least 0")
}

func TestBottlerocketUsesItsSecondVolume(t *testing.T) {
	image := types.Image{
		Name: aws.String("bottlerocket-aws-k8s-1.34-x86_64-v1.50.0-abcdef01"), RootDeviceName: aws.String("/dev/xvda"),
		BlockDeviceMappings: []types.BlockDeviceMapping{
			{DeviceName: aws.String("/dev/xvda"), Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(2)}},
			{DeviceName: aws.String("/dev/xvdb"), Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(30)}},
		},
	}
	require.EqualValues(t, 30, volumeSize(nil, image))
	require.EqualValues(
		t, 40,
		volumeSize(
			[]types.LaunchTemplateBlockDeviceMapping{
				{DeviceName: aws.String("/dev/xvdb"), Ebs: &types.LaunchTemplateEbsBlockDevice{VolumeSize: aws.Int32(40)}},
			},
			image,
		),
	)
	image.Name = aws.String("amazon-eks-node-al2023-x86_64-standard-1.34")
	require.EqualValues(t, 2, volumeSize(nil, image))
	image.BlockDeviceMappings = []types.BlockDeviceMapping{
		{DeviceName: aws.String("/dev/sdb"), VirtualName: aws.String("ephemeral0")},
	}
	require.Zero(t, volumeSize(nil, image), "unknown")
}

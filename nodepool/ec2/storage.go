package ec2

import (
	"cmp"
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/provider"
)

const (
	gibi = 1 << 30
	// defaultVolume is how many GiB a volume is assumed to have that EC2 does not let Foresail look up: as with Karpenter.
	defaultVolume = 20
	// reservedStorage is what the kubelet of EKS reserves for itself and the system.
	reservedStorage = 1 * gibi
)

// ephemeralStorage estimates what pods can use of a volume: what a file system and the partitions of the system leave of it,
// without the tenth below which the kubelet evicts pods and without its reserve.
func ephemeralStorage(volume int64) int64 {
	capacity := volume * gibi / 100 * 95
	return max(0, capacity-capacity/10-reservedStorage)
}

// volume returns the size of the volume that pods use, in GiB. The template may have got a new version, so it is read anew.
func (p *Provider) volume(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	template, err := p.template(ctx)
	if err != nil || aws.ToString(template.ImageId) == "" {
		return defaultVolume, unlessInvalid(err)
	}
	image, err := p.image(ctx, template.ImageId)
	if err != nil {
		return defaultVolume, unlessInvalid(err)
	}
	return cmp.Or(volumeOf(template.BlockDeviceMappings, image), defaultVolume), nil
}

// unlessInvalid returns an error that may pass. One that will not, such as for want of a permission, leaves the default.
func unlessInvalid(err error) error {
	if provider.ClassOf(err) == provider.Invalid {
		return nil
	}
	return err
}

// template returns what the launch template says. An image that is named by a parameter of Systems Manager is looked up.
func (p *Provider) template(ctx context.Context) (types.ResponseLaunchTemplateData, error) {
	output, err := p.client.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: aws.String(p.options.Spec.LaunchTemplate),
		Versions:         []string{p.options.Spec.LaunchTemplateVersion},
		ResolveAlias:     aws.Bool(true),
	})
	if err != nil {
		return types.ResponseLaunchTemplateData{}, classify("DescribeLaunchTemplateVersions", err)
	}
	for _, version := range output.LaunchTemplateVersions {
		if version.LaunchTemplateData != nil {
			return *version.LaunchTemplateData, nil
		}
	}
	return types.ResponseLaunchTemplateData{}, nil
}

func (p *Provider) image(ctx context.Context, id *string) (types.Image, error) {
	output, err := p.client.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{aws.ToString(id)}})
	if err != nil {
		return types.Image{}, classify("DescribeImages", err)
	}
	if len(output.Images) == 0 {
		return types.Image{}, nil
	}
	return output.Images[0], nil
}

// volumeOf returns the size in GiB of the volume that pods use, as the template says or else its image; 0 if neither does.
func volumeOf(template []types.LaunchTemplateBlockDeviceMapping, image types.Image) int64 {
	device := dataDevice(image)
	for _, m := range template {
		if aws.ToString(m.DeviceName) == device && m.Ebs != nil && m.Ebs.VolumeSize != nil {
			return int64(*m.Ebs.VolumeSize)
		}
	}
	for _, m := range image.BlockDeviceMappings {
		if aws.ToString(m.DeviceName) == device && m.Ebs != nil {
			return int64(aws.ToInt32(m.Ebs.VolumeSize))
		}
	}
	return 0
}

// dataDevice is the device of the volume that pods use: the root, but on Bottlerocket the one beside it.
func dataDevice(image types.Image) string {
	if strings.HasPrefix(aws.ToString(image.Name), "bottlerocket-") {
		return "/dev/xvdb"
	}
	return aws.ToString(image.RootDeviceName)
}

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

// defaultVolume is the size in GiB that is assumed for a volume that cannot be looked up: Karpenter's default.
const defaultVolume = 20

// podVolume reads which volume the pods of a new node use.
type podVolume struct {
	client            *client
	template, version string
}

// size returns the size of the volume in GiB. It reads the template each time, as this may have a new version.
func (v *podVolume) size(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	template, err := v.templateData(ctx)
	if err != nil || aws.ToString(template.ImageId) == "" {
		return defaultVolume, unlessInvalid(err)
	}
	image, err := v.image(ctx, template.ImageId)
	if err != nil {
		return defaultVolume, unlessInvalid(err)
	}
	return cmp.Or(volumeSize(template.BlockDeviceMappings, image), defaultVolume), nil
}

// unlessInvalid returns an error that may pass. A permanent one, such as a missing permission, leaves the default.
func unlessInvalid(err error) error {
	if provider.ClassOf(err) == provider.Invalid {
		return nil
	}
	return err
}

// templateData returns the launch template's data, with an image that a parameter of Systems Manager names looked up.
func (v *podVolume) templateData(ctx context.Context) (types.ResponseLaunchTemplateData, error) {
	output, err := v.client.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: aws.String(v.template),
		Versions:         []string{v.version},
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

func (v *podVolume) image(ctx context.Context, id *string) (types.Image, error) {
	output, err := v.client.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{aws.ToString(id)}})
	if err != nil {
		return types.Image{}, classify("DescribeImages", err)
	}
	if len(output.Images) == 0 {
		return types.Image{}, nil
	}
	return output.Images[0], nil
}

// volumeSize returns the size in GiB of the volume that pods use, from the template or else its image; 0 if neither
// has it.
func volumeSize(template []types.LaunchTemplateBlockDeviceMapping, image types.Image) int64 {
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

// dataDevice returns the device of the volume that pods use: the root, but on Bottlerocket the second one.
func dataDevice(image types.Image) string {
	if strings.HasPrefix(aws.ToString(image.Name), "bottlerocket-") {
		return "/dev/xvdb"
	}
	return aws.ToString(image.RootDeviceName)
}

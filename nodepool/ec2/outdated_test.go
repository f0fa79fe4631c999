package ec2

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/fleet"
	awstest "github.com/foresail/foresail/test/env/aws"
)

func TestOutdated(t *testing.T) {
	spec := v1alpha1.EC2Provider{
		LaunchTemplate: "lt-1", InstanceTypes: []string{"t3.small", "m5.large"},
		Subnets: []v1alpha1.EC2Subnet{{Zone: "a", ID: "subnet-1"}, {Zone: "b", ID: "subnet-2"}},
	}
	for name, c := range map[string]struct {
		template, version, instanceType, subnet string
		current                                 string
		want                                    string
	}{
		"the same": {"lt-1", "5", "m5.large", "subnet-2", "5", ""},
		"another version": {
			"lt-1", "3", "m5.large", "subnet-2", "5",
			"it was launched from version 3 of lt-1, and new ones are from version 5",
		},
		"a newer version": {
			"lt-1", "10", "m5.large", "subnet-2", "9",
			"it was launched from version 10 of lt-1, and new ones are from version 9",
		},
		"another template": {
			"lt-0", "5", "m5.large", "subnet-2", "5", "it was launched from launch template lt-0, and new ones are from lt-1",
		},
		"another type": {
			"lt-1", "5", "m5.xlarge", "subnet-2", "5", "its instance type m5.xlarge is not one of the pool's any more",
		},
		"another subnet": {
			"lt-1", "5", "m5.large", "subnet-3", "5", "its subnet subnet-3 is not one of the pool's any more",
		},
		"current not known": {"lt-1", "3", "m5.large", "subnet-2", "", ""},
		"another template, unknown current": {
			"lt-0", "5", "m5.large", "subnet-2", "", "it was launched from launch template lt-0, and new ones are from lt-1",
		},
		"another type, unknown current": {
			"lt-1", "3", "m5.xlarge", "subnet-2", "", "its instance type m5.xlarge is not one of the pool's any more",
		},
		"no tags of EC2": {"", "", "m5.large", "subnet-2", "5", ""},
		"no version":     {"lt-1", "", "m5.large", "subnet-2", "5", ""},
		"no template":    {"", "3", "m5.large", "subnet-2", "5", ""},
		"nothing known":  {"", "", "", "", "5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := types.Instance{InstanceType: types.InstanceType(c.instanceType)}
			for key, value := range map[string]string{templateTag: c.template, versionTag: c.version} {
				if value != "" {
					i.Tags = append(i.Tags, types.Tag{Key: aws.String(key), Value: aws.String(value)})
				}
			}
			if c.subnet != "" {
				i.SubnetId = aws.String(c.subnet)
			}
			require.Equal(t, c.want, outdatedReason(i, spec, c.current, nil))
		})
	}
}

// newVersion creates a version of the launch template.
func (c cloud) newVersion(t testing.TB) (number string) {
	t.Helper()
	client := ec2.NewFromConfig(c.Direct())
	output, err := client.CreateLaunchTemplateVersion(t.Context(), &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateId: aws.String(c.network.Template),
		LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId: aws.String("ami-12c6146b"), InstanceType: types.InstanceTypeT3Small,
		},
	})
	require.NoError(t, err)
	return strconv.FormatInt(aws.ToInt64(output.LaunchTemplateVersion.VersionNumber), 10)
}

// setDefault makes a version of the launch template the default.
func (c cloud) setDefault(t testing.TB, version string) {
	t.Helper()
	_, err := ec2.NewFromConfig(c.Direct()).ModifyLaunchTemplate(t.Context(), &ec2.ModifyLaunchTemplateInput{
		LaunchTemplateId: aws.String(c.network.Template), DefaultVersion: aws.String(version),
	})
	require.NoError(t, err)
}

// timed returns a provider with a clock that pass advances.
func (c cloud) timed(t *testing.T, change ...func(*Options)) (p *Provider, pass func(time.Duration)) {
	t.Helper()
	o := c.options("workers")
	now := time.Now()
	o.Now = func() time.Time { return now }
	for _, f := range change {
		f(&o)
	}
	p, err := New(t.Context(), o)
	require.NoError(t, err)
	return p, func(d time.Duration) { now = now.Add(d) }
}

// start launches an instance with a new token.
func (c cloud) start(t *testing.T, p *Provider) (id string) {
	t.Helper()
	l := c.launch("workers")
	l.Token += strconv.Itoa(len(c.Calls("RunInstances")))
	instance, err := p.Launch(t.Context(), l)
	require.NoError(t, err)
	return instance.ID
}

// listed returns the instances by id.
func listed(t *testing.T, p *Provider) map[string]fleet.Instance {
	t.Helper()
	all, err := p.List(t.Context())
	require.NoError(t, err)
	out := map[string]fleet.Instance{}
	for _, i := range all {
		out[i.ID] = i
	}
	return out
}

// testOutdated creates providers with changed specs.
func testOutdated(t *testing.T, c cloud) {
	first := c.start(t, c.provider(t, "workers"))
	version := c.newVersion(t)
	template := c.network.Template
	for _, row := range []struct {
		change func(*v1alpha1.EC2Provider)
		want   string
	}{
		{func(*v1alpha1.EC2Provider) {}, ""},
		{func(s *v1alpha1.EC2Provider) { s.LaunchTemplateVersion = "1" }, ""},
		{
			func(s *v1alpha1.EC2Provider) { s.LaunchTemplateVersion = version },
			"it was launched from version 1 of " + template + ", and new ones are from version 2",
		},
		{
			func(s *v1alpha1.EC2Provider) { s.LaunchTemplateVersion = "$Latest" },
			"it was launched from version 1 of " + template + ", and new ones are from version 2",
		},
		{
			func(s *v1alpha1.EC2Provider) { s.LaunchTemplate = "lt-0123456789abcdef0" },
			"it was launched from launch template " + template + ", and new ones are from lt-0123456789abcdef0",
		},
		{
			func(s *v1alpha1.EC2Provider) { s.InstanceTypes = s.InstanceTypes[1:] },
			"its instance type t3.small is not one of the pool's any more",
		},
		{
			func(s *v1alpha1.EC2Provider) { s.Subnets = s.Subnets[1:] },
			"its subnet " + c.network.Subnets[0].ID + " is not one of the pool's any more",
		},
	} {
		p, _ := c.timed(t, func(o *Options) { row.change(&o.Spec) })
		all := listed(t, p)
		require.Equal(t, row.want, all[first].Outdated)
		require.Empty(t, all[first].OutdatedErr)
	}
}

// testVersionMoves changes the default version between launches.
func testVersionMoves(t *testing.T, c cloud) {
	p, pass := c.timed(t)
	first := c.start(t, p)
	for range 5 {
		require.Empty(t, listed(t, p)[first].Outdated)
		pass(2 * time.Second)
	}
	require.Len(t, c.Calls("DescribeLaunchTemplates"), 1, "it is read once a minute")
	require.Equal(t, c.network.Template, c.Calls("DescribeLaunchTemplates")[0].Params.Get("LaunchTemplateId.1"))

	second := c.newVersion(t)
	require.Empty(t, listed(t, p)[first].Outdated)
	pass(versionFor)
	require.Empty(t, listed(t, p)[first].Outdated, "it is not the default yet")
	require.Len(t, c.Calls("DescribeLaunchTemplates"), 2)

	c.setDefault(t, second)
	fresh := c.start(t, p)
	all := listed(t, p)
	require.Empty(t, all[fresh].Outdated, "it was launched after the default was read")
	require.Equal(
		t, "it was launched from version 1 of "+c.network.Template+", and new ones are from version 2", all[first].Outdated,
	)
	require.Len(t, c.Calls("DescribeLaunchTemplates"), 3)

	c.setDefault(t, "1")
	pass(versionFor)
	for range 3 {
		all = listed(t, p)
		require.Empty(t, all[first].Outdated)
		require.Equal(
			t, "it was launched from version 2 of "+c.network.Template+", and new ones are from version 1",
			all[fresh].Outdated,
		)
	}
	require.Len(t, c.Calls("DescribeLaunchTemplates"), 4, "a known instance of another version does not cause a call")
}

func testVersionNotKnown(t *testing.T, c cloud) {
	p, pass := c.timed(t)
	first := c.start(t, p)
	c.setDefault(t, c.newVersion(t))
	allow := c.Inject(
		awstest.Fault{Operation: "DescribeLaunchTemplates", Status: http.StatusForbidden, Code: "UnauthorizedOperation"},
	)
	for range 10 {
		all := listed(t, p)
		require.Empty(t, all[first].Outdated)
		require.Contains(t, all[first].OutdatedErr, "DescribeLaunchTemplates: Invalid")
		require.Contains(t, all[first].OutdatedErr, "UnauthorizedOperation")
		c.start(t, p)
		pass(2 * time.Second)
	}
	require.Len(t, c.Calls("DescribeLaunchTemplates"), 1, "a failed call is not repeated at once")
	allow()
	pass(versionFor)
	all := listed(t, p)
	require.NotEmpty(t, all[first].Outdated)
	require.Empty(t, all[first].OutdatedErr)

	// A known version expires.
	c.Inject(awstest.Fault{Operation: "DescribeLaunchTemplates"})
	pass(versionFor)
	all = listed(t, p)
	require.Empty(t, all[first].Outdated)
	require.NotEmpty(t, all[first].OutdatedErr)
}

func testVersionWithoutCall(t *testing.T, c cloud) {
	p, _ := c.timed(t)
	require.Empty(t, listed(t, p))
	fixed, _ := c.timed(t, func(o *Options) { o.Spec.LaunchTemplateVersion = "2" })
	c.start(t, p)
	require.Len(t, listed(t, fixed), 1)
	other, _ := c.timed(t, func(o *Options) { o.Spec.LaunchTemplate = "lt-0123456789abcdef0" })
	require.Len(t, listed(t, other), 1)
	require.Empty(t, c.Calls("DescribeLaunchTemplates"))

	gone, _ := c.timed(t)
	_, err := ec2.NewFromConfig(c.Direct()).DeleteLaunchTemplate(
		t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String(c.network.Template)},
	)
	require.NoError(t, err)
	for _, i := range listed(t, gone) {
		require.Empty(t, i.Outdated)
		require.Contains(t, i.OutdatedErr, "no version of "+c.network.Template)
	}
}

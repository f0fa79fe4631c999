package ec2

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// The tags that EC2 sets on an instance launched from a template.
const (
	templateTag = "aws:ec2launchtemplate:id"
	versionTag  = "aws:ec2launchtemplate:version"
)

const (
	// versionFor is how long the number of $Default or $Latest, or the error of a failed call, is cached.
	versionFor = time.Minute
	// versionTimeout is short, as the list of instances waits for the answer.
	versionTimeout = 5 * time.Second
)

// outdatedReason returns how an instance differs from a new one, "" if it does not or if that is not known. current is
// the version that new ones are launched from, "" if unknown, and meeting the types that meet the requirements, nil if
// unknown. Prices do not make an instance outdated.
func outdatedReason(i types.Instance, spec v1alpha1.EC2Provider, current string, meeting []string) string {
	return cmp.Or(
		outdatedTemplate(tagsOf(i), spec.LaunchTemplate, current),
		outdatedType(string(i.InstanceType), spec, meeting),
		outdatedSubnet(aws.ToString(i.SubnetId), spec.Subnets),
	)
}

func outdatedTemplate(tags map[string]string, launchTemplate, current string) string {
	template, version := tags[templateTag], tags[versionTag]
	switch {
	case template == "":
	case template != launchTemplate:
		return fmt.Sprintf("it was launched from launch template %s, and new ones are from %s", template, launchTemplate)
	case version != "" && current != "" && version != current:
		return fmt.Sprintf("it was launched from version %s of %s, and new ones are from version %s",
			version, template, current)
	}
	return ""
}

func outdatedType(name string, spec v1alpha1.EC2Provider, meeting []string) string {
	switch {
	case name == "":
	case spec.Requirements == nil && !slices.Contains(spec.InstanceTypes, name):
		return fmt.Sprintf("its instance type %s is not one of the pool's any more", name)
	case spec.Requirements != nil && meeting != nil && !slices.Contains(meeting, name):
		return fmt.Sprintf("its instance type %s does not meet the pool's requirements any more", name)
	}
	return ""
}

func outdatedSubnet(id string, subnets []v1alpha1.EC2Subnet) string {
	if id == "" || slices.ContainsFunc(subnets, func(s v1alpha1.EC2Subnet) bool { return s.ID == id }) {
		return ""
	}
	return fmt.Sprintf("its subnet %s is not one of the pool's any more", id)
}

// templateVersion marks instances that differ from new ones. It resolves $Default and $Latest and caches the number.
// Its methods may be called from any goroutine.
type templateVersion struct {
	client *client
	spec   v1alpha1.EC2Provider
	now    func() time.Time

	mu   sync.Mutex
	last resolvedVersion
}

// resolvedVersion is the outcome of a call that resolves $Default or $Latest.
type resolvedVersion struct {
	at     time.Time // of the call; zero: none was made
	number string    // "" if the call failed
	err    error
	listed map[string]string // versions of the instances that were listed before the call, by id
}

// markOutdated sets Outdated of instances that differ from new ones. described has the same order. It makes at most one
// call. meeting is as for [outdatedReason].
func (v *templateVersion) markOutdated(
	ctx context.Context, described []types.Instance, list []fleet.Instance, meeting []string,
) {
	versions := map[string]string{}
	for _, d := range described {
		if tags := tagsOf(d); tags[templateTag] == v.spec.LaunchTemplate && tags[versionTag] != "" {
			versions[aws.ToString(d.InstanceId)] = tags[versionTag]
		}
	}
	current, err := v.current(ctx, versions)
	for n := range list {
		i := &list[n]
		i.Outdated = outdatedReason(described[n], v.spec, current, meeting)
		if err != nil && i.Outdated == "" && versions[i.ID] != "" {
			i.OutdatedErr = err.Error()
		}
	}
}

// current returns the number of the version that new instances are launched from. It makes no call if no listed
// instance has a version to compare.
func (v *templateVersion) current(ctx context.Context, listed map[string]string) (string, error) {
	named := v.spec.LaunchTemplateVersion
	if !strings.HasPrefix(named, "$") {
		return named, nil
	}
	now := v.now()
	v.mu.Lock()
	last := v.last
	v.mu.Unlock()
	if len(listed) == 0 || last.holds(now, listed) {
		return last.number, last.err
	}
	number, err := v.resolve(ctx, named)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = resolvedVersion{at: now, number: number, err: err, listed: listed}
	return number, err
}

// holds reports whether the number may still be used. An instance of another version that was not listed before the
// call may have been launched after it, from a version that is newer than the number.
func (c resolvedVersion) holds(now time.Time, listed map[string]string) bool {
	if c.at.IsZero() || now.Sub(c.at) >= versionFor {
		return false
	}
	for id, version := range listed {
		if _, known := c.listed[id]; c.err == nil && !known && version != c.number {
			return false
		}
	}
	return true
}

// resolve returns the current number of $Default or $Latest.
func (v *templateVersion) resolve(ctx context.Context, named string) (string, error) {
	const op = "DescribeLaunchTemplates"
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	id := v.spec.LaunchTemplate
	output, err := v.client.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{
		LaunchTemplateIds: []string{id},
	})
	if err != nil {
		return "", classify(op, err)
	}
	for _, t := range output.LaunchTemplates {
		number := t.DefaultVersionNumber
		if named == "$Latest" {
			number = t.LatestVersionNumber
		}
		if aws.ToString(t.LaunchTemplateId) == id && number != nil {
			return strconv.FormatInt(*number, 10), nil
		}
	}
	return "", &provider.Error{Class: provider.Invalid, Op: op, Err: fmt.Errorf("the answer has no version of %s", id)}
}

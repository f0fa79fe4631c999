package ec2

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/provider"
)

// The tags that EC2 itself puts on an instance launched from a template.
const (
	templateTag = "aws:ec2launchtemplate:id"
	versionTag  = "aws:ec2launchtemplate:version"
)

const (
	// versionFor is how long the number behind $Default or $Latest is taken to stay the same, and how long a failed call is
	// not repeated.
	versionFor = time.Minute
	// versionTimeout is short, as the list of instances waits for the answer.
	versionTimeout = 5 * time.Second
)

// outdated returns why an instance is not what a new one would be, "" if it is or if that is not known. current is the
// number of the version that new ones are launched from, "" if it is not known, and meeting the types that meet the
// requirements, nil if they are not known. Prices make no instance outdated.
func outdated(i types.Instance, spec v1alpha1.EC2Provider, current string, meeting []string) string {
	tags := tagsOf(i)
	template, version := tags[templateTag], tags[versionTag]
	instanceType, subnet := string(i.InstanceType), aws.ToString(i.SubnetId)
	inSpec := func(s v1alpha1.EC2Subnet) bool { return s.ID == subnet }
	switch {
	case template != "" && template != spec.LaunchTemplate:
		return fmt.Sprintf("it was launched from launch template %s, and new ones are from %s", template, spec.LaunchTemplate)
	case template != "" && version != "" && current != "" && version != current:
		return fmt.Sprintf("it was launched from version %s of %s, and new ones are from version %s", version, template, current)
	case instanceType != "" && spec.Requirements != nil && meeting != nil && !slices.Contains(meeting, instanceType):
		return fmt.Sprintf("its instance type %s does not meet the pool's requirements any more", instanceType)
	case instanceType != "" && spec.Requirements == nil && !slices.Contains(spec.InstanceTypes, instanceType):
		return fmt.Sprintf("its instance type %s is not one of the pool's any more", instanceType)
	case subnet != "" && !slices.ContainsFunc(spec.Subnets, inSpec):
		return fmt.Sprintf("its subnet %s is not one of the pool's any more", subnet)
	}
	return ""
}

// currentVersion is what $Default or $Latest was found to be.
type currentVersion struct {
	at     time.Time // of the call; zero: none was made
	number string    // "" if the call failed
	err    error
	listed map[string]string // versions of the instances that were listed before the call, by id
}

// judge fills in which of the pool's instances are outdated. It makes one call at most.
func (p *Provider) judge(ctx context.Context, described []types.Instance, instances []fleet.Instance) {
	versions := map[string]string{}
	for _, d := range described {
		if tags := tagsOf(d); tags[templateTag] == p.options.Spec.LaunchTemplate && tags[versionTag] != "" {
			versions[aws.ToString(d.InstanceId)] = tags[versionTag]
		}
	}
	current, err := p.version(ctx, versions)
	p.mu.Lock()
	meeting := p.selection.names()
	p.mu.Unlock()
	for n := range instances {
		i := &instances[n]
		i.Outdated = outdated(described[n], p.options.Spec, current, meeting)
		if err != nil && i.Outdated == "" && versions[i.ID] != "" {
			i.OutdatedErr = err.Error()
		}
	}
}

// version returns the number of the version that new instances are launched from. It is not asked for if no instance has
// a version to compare.
func (p *Provider) version(ctx context.Context, listed map[string]string) (string, error) {
	named := p.options.Spec.LaunchTemplateVersion
	if !strings.HasPrefix(named, "$") {
		return named, nil
	}
	now := p.options.Now()
	p.mu.Lock()
	last := p.current
	p.mu.Unlock()
	if len(listed) == 0 || last.holds(now, listed) {
		return last.number, last.err
	}
	number, err := p.resolve(ctx, named)
	p.mu.Lock()
	p.current = currentVersion{at: now, number: number, err: err, listed: listed}
	p.mu.Unlock()
	return number, err
}

// holds returns whether the number may still be used. An instance of another version that was not listed before the call
// may have been launched after it, from a version that is newer than the number.
func (c currentVersion) holds(now time.Time, listed map[string]string) bool {
	if c.at.IsZero() || now.Sub(c.at) >= versionFor {
		return false
	}
	for id, version := range listed {
		if _, before := c.listed[id]; c.err == nil && !before && version != c.number {
			return false
		}
	}
	return true
}

// resolve asks EC2 which version $Default or $Latest is now.
func (p *Provider) resolve(ctx context.Context, named string) (string, error) {
	const op = "DescribeLaunchTemplates"
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	id := p.options.Spec.LaunchTemplate
	output, err := p.client.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{id}})
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

package ec2

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// launcher launches instances: with RunInstances one type, with CreateFleet one of several.
type launcher struct {
	client   *client
	limits   *Limits
	region   string
	requests requests
	existing *instances
	now      func() time.Time
}

func newLauncher(client *client, existing *instances, o Options) *launcher {
	return &launcher{
		client: client, limits: o.Limits, region: o.Spec.Region, existing: existing, now: o.Now,
		requests: requests{
			template: o.Spec.LaunchTemplate, version: o.Spec.LaunchTemplateVersion,
			maxPrice: o.MaxPrice, owner: existing.owner,
		},
	}
}

// launch returns the instances that a token launches or has launched. If the parameters that the spec adds to a launch
// have changed since the token was used, the instances are found by their tags.
func (s *launcher) launch(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	if err := s.limits.waitForInstances(ctx, s.region, int(instanceCount(l))); err != nil {
		return provider.Launched{}, classify(runInstances, err)
	}
	call := s.runInstances
	if len(l.Alternatives) > 0 {
		call = s.createFleet
	}
	launched, err := call(ctx, l)
	if provider.ClassOf(err) == provider.TokenMismatch {
		return s.launchedAs(ctx, l, err)
	}
	return launched, err
}

// once has the SDK send a call one time: only the caller repeats a launch.
func once(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }

func (s *launcher) runInstances(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	output, err := s.client.RunInstances(ctx, s.requests.run(l), once)
	if err != nil {
		return provider.Launched{}, classify(runInstances, err)
	}
	if len(output.Instances) == 0 {
		return provider.Launched{}, &provider.Error{
			Class: provider.Unknown, Op: runInstances, Err: errors.New("the answer has no instance"),
		}
	}
	launched := s.existing.translate(output.Instances)
	for _, i := range launched {
		s.existing.recent.add(i.ID)
	}
	return launchedOf(launched, nil), nil
}

// createFleet has EC2 choose among the types of a launch. A fleet of the type instant is one call: it launches
// instances, returns an error for each type that failed, and manages nothing afterwards. Unlike RunInstances it uses
// its token up even if it launches nothing: the same call always gets the same answer.
func (s *launcher) createFleet(ctx context.Context, l provider.Launch) (provider.Launched, error) {
	output, err := s.client.CreateFleet(ctx, s.requests.fleet(l), once)
	if err != nil {
		return provider.Launched{}, classify(createFleet, err)
	}
	launched := s.launchedBy(l, output)
	if len(launched) == 0 {
		return provider.Launched{}, fleetError(l, output.Errors)
	}
	return launchedOf(launched, refusals(output.Errors)), nil
}

// launchedBy returns the instances that a fleet has launched.
func (s *launcher) launchedBy(l provider.Launch, output *ec2.CreateFleetOutput) []fleet.Instance {
	var out []fleet.Instance
	for _, i := range output.Instances {
		for _, id := range i.InstanceIds {
			s.existing.recent.add(id)
			out = append(out, fleet.Instance{
				ID: id, ProviderID: providerID(l.Zone, id), Action: l.Action, Slot: l.Slot, Token: l.Token,
				Placement: l.Of(string(i.InstanceType)), State: fleet.Pending, Launched: s.now(),
			})
		}
	}
	return out
}

// launchedAs returns the instances that a token has launched as requested, or the mismatch if EC2 lists none.
func (s *launcher) launchedAs(ctx context.Context, l provider.Launch, mismatch error) (provider.Launched, error) {
	described, err := s.existing.living(ctx, tokenTag, l.Token)
	if err != nil {
		return provider.Launched{}, err
	}
	var launched []fleet.Instance
	for _, i := range s.existing.translate(described) {
		if l.Takes(i) && i.OwnedBy == "" {
			launched = append(launched, i)
		}
	}
	if len(launched) == 0 {
		return provider.Launched{}, mismatch
	}
	return launchedOf(launched, nil), nil
}

// launchedOf returns the result of a call that has launched at least one instance.
func launchedOf(launched []fleet.Instance, refusals []provider.Refusal) provider.Launched {
	first := provider.Launched{Instance: launched[0], Refusals: refusals}
	if len(launched) > 1 {
		first.Others = launched[1:]
	}
	return first
}

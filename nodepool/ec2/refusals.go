package ec2

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/provider"
)

// refusals returns the instance types that a fleet could not launch, with the reason. Errors that name no type are left
// out.
func refusals(list []types.CreateFleetError) []provider.Refusal {
	var out []provider.Refusal
	for _, e := range list {
		if kind := refusedType(e); kind != "" {
			out = append(out, provider.Refusal{
				InstanceType: kind, Class: classOfCode(aws.ToString(e.ErrorCode)), Reason: refusalReason(e),
			})
		}
	}
	return out
}

func refusedType(e types.CreateFleetError) string {
	if e.LaunchTemplateAndOverrides == nil || e.LaunchTemplateAndOverrides.Overrides == nil {
		return ""
	}
	return string(e.LaunchTemplateAndOverrides.Overrides.InstanceType)
}

func refusalReason(e types.CreateFleetError) string {
	return fmt.Sprintf("%s: %s", aws.ToString(e.ErrorCode), aws.ToString(e.ErrorMessage))
}

// fleetError returns the error of a fleet that has launched nothing. If one type had no capacity, types without an
// error had none either, as EC2 tries all. Without any reason, or with one that leaves the outcome open, the token can
// no longer be used and an instance may still appear: a mismatch.
func fleetError(l provider.Launch, list []types.CreateFleetError) error {
	if len(list) == 0 {
		return &provider.Error{
			Class: provider.TokenMismatch, Op: createFleet,
			Err: errors.New("the fleet of the token has no instance, and EC2 gives no reason"),
		}
	}
	err := &provider.Error{
		Class: provider.Invalid, Op: createFleet, Code: aws.ToString(list[0].ErrorCode), Refusals: refusals(list),
	}
	var reasons []string
	for _, e := range list {
		switch class := classOfCode(aws.ToString(e.ErrorCode)); class {
		case provider.Capacity, provider.ZoneCapacity, provider.Quota, provider.AccountQuota, provider.Address:
			if err.Class == provider.Invalid {
				err.Class, err.Code = class, aws.ToString(e.ErrorCode)
			}
		case provider.Invalid:
		default:
			err.Class = provider.TokenMismatch
		}
		if why := refusalReason(e); !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	err.Err = errors.New(strings.Join(reasons, "; "))
	if err.Class == provider.Capacity {
		refuseOthers(err, l)
	}
	return err
}

// refuseOthers adds the types of a launch that its error does not name.
func refuseOthers(err *provider.Error, l provider.Launch) {
	for _, name := range typesOfLaunch(l) {
		if !slices.ContainsFunc(err.Refusals, func(r provider.Refusal) bool { return r.InstanceType == name }) {
			err.Refusals = append(err.Refusals, provider.Refusal{
				InstanceType: name, Class: err.Class, Reason: err.Err.Error(),
			})
		}
	}
}

package ec2

import (
	"context"
	"errors"
	"net/http"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/foresail/foresail/nodepool/provider"
)

// classes are what EC2's error codes mean. A code that is not here is Invalid if EC2 blames the caller for it (a status of
// 4xx), and otherwise Unknown.
var classes = map[string]provider.Class{
	"RequestLimitExceeded":  provider.Throttled,
	"Throttling":            provider.Throttled,
	"ThrottlingException":   provider.Throttled,
	"EC2ThrottledException": provider.Throttled,
	"RequestThrottled":      provider.Throttled,
	"ConcurrentTagAccess":   provider.Throttled,

	"InsufficientInstanceCapacity":         provider.Capacity,
	"InsufficientCapacity":                 provider.Capacity,
	"InsufficientHostCapacity":             provider.Capacity,
	"InsufficientCapacityOnHost":           provider.Capacity,
	"InsufficientReservedInstanceCapacity": provider.Capacity,
	"InsufficientVolumeCapacity":           provider.ZoneCapacity,
	"ReservationCapacityExceeded":          provider.Capacity,
	"UnfulfillableCapacity":                provider.Capacity,
	"SpotMaxPriceTooLow":                   provider.Capacity,
	"Unsupported":                          provider.Capacity, // the zone does not have the instance type

	"InstanceLimitExceeded":         provider.Quota,
	"VcpuLimitExceeded":             provider.Quota,
	"MaxSpotInstanceCountExceeded":  provider.Quota,
	"VolumeLimitExceeded":           provider.AccountQuota,
	"MaxIOPSLimitExceeded":          provider.AccountQuota,
	"NetworkInterfaceLimitExceeded": provider.AccountQuota,
	"AddressLimitExceeded":          provider.AccountQuota,
	"PendingVerification":           provider.AccountQuota, // of an account that is new to the region

	"InsufficientFreeAddressesInSubnet": provider.Address,
	"InsufficientAddressCapacity":       provider.Address,
	"PrivateIpAddressLimitExceeded":     provider.Address,

	"IdempotentParameterMismatch":  provider.TokenMismatch,
	"IdempotentInstanceTerminated": provider.TokenMismatch, // its instance is gone: the token is used up

	"InternalError":      provider.Unknown, // such codes have a status of 5xx, but where a fleet tells them
	"InternalFailure":    provider.Unknown,
	"ServiceUnavailable": provider.Unknown,
	"Unavailable":        provider.Unknown,

	"RequestTimeout":        provider.Unknown, // blames the caller, who sent too slowly
	"RequestExpired":        provider.Invalid,
	"AuthFailure":           provider.Invalid,
	"InvalidAMIID.NotFound": provider.Invalid,
}

// classify makes an error of the SDK one of a provider. One whose call was never answered is Unknown, but if it was never
// sent for want of a token of the bucket it is Throttled.
func classify(op string, err error) error {
	out := &provider.Error{Class: classOf(err), Op: op, Code: codeOf(err), Err: err}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		out.Message = api.ErrorMessage()
	}
	return out
}

func classOf(err error) provider.Class {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return provider.Unknown
	}
	if errors.Is(err, errBucketEmpty) {
		return provider.Throttled
	}
	code := codeOf(err)
	if class, ok := classes[code]; ok {
		return class
	}
	var response *awshttp.ResponseError
	if code == "" || !errors.As(err, &response) {
		return provider.Unknown
	}
	if status := response.HTTPStatusCode(); status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		return provider.Invalid
	}
	return provider.Unknown
}

// classOfCode is what a code means that a fleet tells, which has no status.
func classOfCode(code string) provider.Class {
	code = withoutBlame(code)
	if class, ok := classes[code]; ok {
		return class
	}
	if code == "" {
		return provider.Unknown
	}
	return provider.Invalid
}

// codeOf returns EC2's code; "" if EC2 did not answer. Where it is prefixed by who is to blame (Client.UnauthorizedOperation)
// the prefix is left out.
func codeOf(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return withoutBlame(api.ErrorCode())
}

func withoutBlame(code string) string {
	return strings.TrimPrefix(strings.TrimPrefix(code, "Client."), "Server.")
}

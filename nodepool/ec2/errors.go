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

// classes maps EC2's error codes. Other codes are Invalid if EC2 blames the caller (a status of 4xx), and otherwise
// Unknown.
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
	"PendingVerification":           provider.AccountQuota, // the account is new to the region

	"InsufficientFreeAddressesInSubnet": provider.Address,
	"InsufficientAddressCapacity":       provider.Address,
	"PrivateIpAddressLimitExceeded":     provider.Address,

	"IdempotentParameterMismatch":  provider.TokenMismatch,
	"IdempotentInstanceTerminated": provider.TokenMismatch, // its instance is gone: the token is used up

	"InternalError":      provider.Unknown, // these have a status of 5xx, except in the errors of a fleet
	"InternalFailure":    provider.Unknown,
	"ServiceUnavailable": provider.Unknown,
	"Unavailable":        provider.Unknown,

	"RequestTimeout":        provider.Unknown, // a status of 4xx: the caller sent too slowly
	"RequestExpired":        provider.Invalid,
	"AuthFailure":           provider.Invalid,
	"InvalidAMIID.NotFound": provider.Invalid,
}

// errBucketEmpty is the error of a call that was not sent, as no token was available in time.
var errBucketEmpty = errors.New("not sent: too many calls of its kind have been made")

// classify returns an error of the SDK as a provider's. A call without an answer is Unknown, and one that was not
// sent, as the token bucket was empty, is Throttled.
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

// classOfCode returns the class of a code in the errors of a fleet, which have no status.
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

// codeOf returns EC2's code, without the prefix that blames the client or the server; "" if EC2 did not answer.
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

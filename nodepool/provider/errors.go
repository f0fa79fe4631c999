package provider

import (
	"errors"
	"fmt"
)

// Class is the meaning of a cloud's error for the call.
type Class string

// The classes. All except Unknown and Throttled are definitive: the call has had no effect and will have none.
const (
	Unknown       Class = "Unknown"       // the outcome is open: repeat the call with the same token
	Throttled     Class = "Throttled"     // too many calls: repeat later
	Capacity      Class = "Capacity"      // the zone has none left of this type and market, or the price is too low
	ZoneCapacity  Class = "ZoneCapacity"  // the zone has none left of a resource of every launch, such as volumes
	Quota         Class = "Quota"         // a quota of the type and of those that share it is reached
	AccountQuota  Class = "AccountQuota"  // a quota of a resource of every launch is reached
	Address       Class = "Address"       // the subnet has no free address
	Invalid       Class = "Invalid"       // the call cannot succeed: a template, a permission, a parameter
	TokenMismatch Class = "TokenMismatch" // the token was used with other parameters
	NotOwned      Class = "NotOwned"      // the instance is not the pool's
)

// Classes returns all classes.
func Classes() []Class {
	return []Class{
		Unknown, Throttled, Capacity, ZoneCapacity, Quota, AccountQuota, Address, Invalid, TokenMismatch, NotOwned,
	}
}

// Error is an error of a cloud.
type Error struct {
	Class Class
	Op    string // such as RunInstances
	Code  string // of the cloud, such as InsufficientInstanceCapacity
	Err   error
	// Message is the cloud's message without parts that differ between calls, such as a request id.
	Message string
	// Refusals are the errors of each instance type of a launch with alternatives, if the cloud returns them.
	Refusals []Refusal
}

// Refusal is why one instance type of a launch could not be launched.
type Refusal struct {
	InstanceType string
	Class        Class
	Reason       string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %v", e.Op, e.Class, e.Err) }

// Unwrap returns the error of the cloud's client.
func (e *Error) Unwrap() error { return e.Err }

// Reason returns the cloud's code and message, in a form that is the same for all calls with the same cause.
func Reason(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Message != "" {
		return e.Code + ": " + e.Message
	}
	return err.Error()
}

// RefusalsOf returns the refusals of an error; nil if it has none.
func RefusalsOf(err error) []Refusal {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Refusals
	}
	return nil
}

// ClassOf returns the class of an error; Unknown if it is no *[Error].
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Unknown
}

package provider

import (
	"errors"
	"fmt"
)

// Class says what an error of a cloud means for what was asked.
type Class string

// The classes. All but Unknown and Throttled are definitive: what was asked has not happened and will not.
const (
	Unknown       Class = "Unknown"       // it may or may not have happened: ask again, with the same token
	Throttled     Class = "Throttled"     // too many calls: later
	Capacity      Class = "Capacity"      // none left of this type in this zone and market, or the price is too low
	ZoneCapacity  Class = "ZoneCapacity"  // the zone has none left of what every launch needs, such as volumes
	Quota         Class = "Quota"         // the account may not have more of this type and those that are limited with it
	AccountQuota  Class = "AccountQuota"  // the account may not have more of what every launch needs
	Address       Class = "Address"       // the subnet has no address left
	Invalid       Class = "Invalid"       // it can never succeed as it is asked: a template, a right, a parameter
	TokenMismatch Class = "TokenMismatch" // the token was used with other parameters
	NotOwned      Class = "NotOwned"      // the instance is not the pool's
)

// Classes returns all classes.
func Classes() []Class {
	return []Class{Unknown, Throttled, Capacity, ZoneCapacity, Quota, AccountQuota, Address, Invalid, TokenMismatch, NotOwned}
}

// Error is an error of a cloud.
type Error struct {
	Class Class
	Op    string // such as RunInstances
	Code  string // the cloud's own, such as InsufficientInstanceCapacity
	Err   error
	// Message is what the cloud said, without what differs from call to call, such as the id of a request.
	Message string
	// Refusals are those of a launch with alternatives, if the cloud tells of each type why it could not be launched.
	Refusals []Refusal
}

// Refusal is why one of the instance types of a launch could not be launched.
type Refusal struct {
	InstanceType string
	Class        Class
	Reason       string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %v", e.Op, e.Class, e.Err) }

// Unwrap returns what the cloud's client said.
func (e *Error) Unwrap() error { return e.Err }

// Reason returns what the cloud said, in a form that is the same for all calls that fail for one reason.
func Reason(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Message != "" {
		return e.Code + ": " + e.Message
	}
	return err.Error()
}

// RefusalsOf returns those of an error; nil if it tells of none.
func RefusalsOf(err error) []Refusal {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Refusals
	}
	return nil
}

// ClassOf returns the class of an error; any that is not an *[Error] is Unknown.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Unknown
}

package simulated

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/provider"
)

// FaultsName is the ConfigMap, in the namespace of the instances, with the faults of the whole cloud.
const FaultsName = "foresail-simulated-faults"

// Keys of that ConfigMap.
const (
	// FaultExhausted has the placements without capacity: zone/type/market on each line, where * matches any.
	FaultExhausted = "exhausted"
	// FaultNeverJoin keeps instances that are launched from now on from joining: "true".
	FaultNeverJoin = "neverJoin"
	// FaultHiddenFor is how long new instances are not listed, such as "10s".
	FaultHiddenFor = "hiddenFor"
	// FaultError fails all calls except Offers and Messages with an error of a class, such as "Throttled".
	FaultError = "error"
)

// faults are the faults of the whole cloud. The zero value has none.
type faults struct {
	patterns  []string
	neverJoin bool
	hiddenFor time.Duration
	class     provider.Class
}

// faultsOf parses the faults of a cloud. An invalid value is an error, so that a typing mistake is noticed.
func faultsOf(object *corev1.ConfigMap) (faults, error) {
	f := faults{
		patterns:  strings.Fields(object.Data[FaultExhausted]),
		neverJoin: object.Data[FaultNeverJoin] == "true",
		class:     provider.Class(object.Data[FaultError]),
	}
	if text := object.Data[FaultNeverJoin]; !slices.Contains([]string{"", "true", "false"}, text) {
		return faults{}, fmt.Errorf("data.%s: %q: must be true or false", FaultNeverJoin, text)
	}
	if f.class != "" && !slices.Contains(provider.Classes(), f.class) {
		return faults{}, fmt.Errorf("data.%s: %q: must be one of %v", FaultError, f.class, provider.Classes())
	}
	for _, pattern := range f.patterns {
		if _, err := path.Match(pattern, ""); err != nil || strings.Count(pattern, "/") != 2 {
			return faults{}, fmt.Errorf("data.%s: %q: must be zone/type/market, where * matches any", FaultExhausted, pattern)
		}
	}
	if text := object.Data[FaultHiddenFor]; text != "" {
		var err error
		if f.hiddenFor, err = time.ParseDuration(text); err != nil {
			return faults{}, fmt.Errorf("data.%s: %q: must be a duration, such as 10s", FaultHiddenFor, text)
		}
	}
	return f, nil
}

func (f faults) exhausted(p fleet.Placement) bool {
	name := p.Zone + "/" + p.InstanceType + "/" + string(p.Market)
	for _, pattern := range f.patterns {
		if match, err := path.Match(pattern, name); err == nil && match {
			return true
		}
	}
	return false
}

// choose gives an instance the first type of its launch that has capacity.
func (f faults) choose(i *instance, l provider.Launch) (refusals []provider.Refusal, err error) {
	for _, kind := range append([]string{l.InstanceType}, l.Alternatives...) {
		i.Placement = l.Of(kind)
		if !f.exhausted(i.Placement) {
			return refusals, nil
		}
		why := fmt.Sprintf("no %s %s is left in zone %s", l.Market, kind, l.Zone)
		refusals = append(refusals, provider.Refusal{InstanceType: kind, Class: provider.Capacity, Reason: why})
	}
	failure := &provider.Error{
		Class: provider.Capacity, Op: "Launch", Code: "InsufficientCapacity", Err: errors.New(refusals[0].Reason),
	}
	if len(l.Alternatives) > 0 {
		failure.Refusals = refusals
	}
	return nil, failure
}

// failure returns the error of every call, nil if none is set.
func (f faults) failure(op string) error {
	if f.class == "" {
		return nil
	}
	return &provider.Error{
		Class: f.class, Op: op, Code: string(f.class), Err: errors.New("ConfigMap " + FaultsName + " sets this error"),
	}
}

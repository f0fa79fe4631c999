package simulated

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/nodepool/provider"
)

// FaultsName is the ConfigMap, in the namespace of the instances, that says what goes wrong in all of a cloud.
const FaultsName = "foresail-simulated-faults"

// Keys of that ConfigMap.
const (
	// FaultExhausted is what has no capacity left: zone/type/market on each line, where * stands for any.
	FaultExhausted = "exhausted"
	// FaultNeverJoin has instances launched from now on never join: "true".
	FaultNeverJoin = "neverJoin"
	// FaultHiddenFor keeps instances from being listed for so long after their launch, such as "10s".
	FaultHiddenFor = "hiddenFor"
	// FaultError fails all calls but those for offers and notices with an error of a class, such as "Throttled".
	FaultError = "error"
)

// Annotations of an instance's ConfigMap that have something happen to it at the next step.
const (
	// AnnotationNeverJoin keeps it from joining: "true".
	AnnotationNeverJoin = "simulated.foresail.dev/never-join"
	// AnnotationTerminate terminates it, as somebody in the cloud's console would: "true".
	AnnotationTerminate = "simulated.foresail.dev/terminate"
	// AnnotationVanish terminates it and has its Node deleted by others soon after: "true".
	AnnotationVanish = "simulated.foresail.dev/vanish"
	// AnnotationInterrupt has the cloud take it back after so long, with a notice now: "2m".
	AnnotationInterrupt = "simulated.foresail.dev/interrupt-after"
	// AnnotationRebalance has the cloud advise to leave it: "true".
	AnnotationRebalance = "simulated.foresail.dev/rebalance"
)

// faults is what goes wrong in all of the cloud. The zero value is nothing.
type faults struct {
	patterns  []string
	neverJoin bool
	hiddenFor time.Duration
	class     provider.Class
}

// faults reads what goes wrong now. What cannot be understood is an error, as it would be silently nothing otherwise.
func (c *Cloud) faults(ctx context.Context) (faults, error) {
	object, err := c.options.Client.CoreV1().ConfigMaps(c.namespace).Get(ctx, FaultsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return faults{}, nil
	}
	if err != nil {
		return faults{}, err
	}
	f, err := faultsOf(object)
	if err != nil {
		return faults{}, fmt.Errorf("ConfigMap %s/%s: %w", c.namespace, FaultsName, err)
	}
	return f, nil
}

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
			return faults{}, fmt.Errorf("data.%s: %q: must be zone/type/market, where * stands for any", FaultExhausted, pattern)
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

// choose gives an instance the first type of its launch that is left.
func (f faults) choose(i *instance, l provider.Launch) (refusals []provider.Refusal, err error) {
	for _, kind := range append([]string{l.InstanceType}, l.Alternatives...) {
		i.Placement = l.Of(kind)
		if !f.exhausted(i.Placement) {
			return refusals, nil
		}
		why := fmt.Sprintf("no %s %s is left in zone %s", l.Market, kind, l.Zone)
		refusals = append(refusals, provider.Refusal{InstanceType: kind, Class: provider.Capacity, Reason: why})
	}
	gone := &provider.Error{Class: provider.Capacity, Op: "Launch", Code: "InsufficientCapacity", Err: errors.New(refusals[0].Reason)}
	if len(l.Alternatives) > 0 {
		gone.Refusals = refusals
	}
	return nil, gone
}

// failure is the error that every call ends with, if one was asked for.
func (f faults) failure(op string) error {
	if f.class == "" {
		return nil
	}
	return &provider.Error{Class: f.class, Op: op, Code: string(f.class), Err: errors.New("ConfigMap " + FaultsName + " asks for this error")}
}

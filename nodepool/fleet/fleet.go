// Package fleet defines the types for a fleet of instances: what can be launched, where and how,
// and what exists. Everything else in the node pool builds on them.
package fleet

import (
	"slices"
)

// Market is the way in which an instance is bought.
type Market string

// The markets.
const (
	Spot     Market = "Spot"
	OnDemand Market = "OnDemand"
)

// Price is the hourly price of an instance in US dollars. nil is unknown.
type Price struct {
	OnDemand *float64 `json:"onDemand,omitempty"`
	Spot     *float64 `json:"spot,omitempty"`
}

// Of returns the price in a market.
func (p Price) Of(m Market) *float64 {
	if m == Spot {
		return p.Spot
	}
	return p.OnDemand
}

// Placement is the zone, subnet, instance type and market of a launch.
type Placement struct {
	Zone         string `json:"zone"`
	Subnet       string `json:"subnet,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	Market       Market `json:"market"`
}

// Quota is the quota of an instance type.
type Quota struct {
	Group string // of types with a common limit; "" = all types of a market
	VCPUs int64  // that an instance uses
}

// Offer is a kind of instance that can be launched in a zone.
type Offer struct {
	Zone, Subnet, InstanceType string
}

// Shape is a requirement on a number of new nodes: otherwise the pods that they are for could not
// run on them.
type Shape struct {
	Kinds []Kind // any of them is suitable
	Nodes int
}

// Kind is an instance type in a zone.
type Kind struct{ Zone, InstanceType string }

// Takes reports whether a placement is one of the kinds.
func (s Shape) Takes(p Placement) bool {
	return slices.Contains(s.Kinds, Kind{p.Zone, p.InstanceType})
}

// Unhelped is a pod that no new node of the pool could run. It is reported and not counted.
type Unhelped struct{ Pod, Reason string }

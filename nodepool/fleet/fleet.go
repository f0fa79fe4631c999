// Package fleet has the nouns of a fleet of instances: what can be launched, where and how, and
// what is there. Everything else of the node pool is built on them.
package fleet

import (
	"slices"
)

// Market is how an instance is bought.
type Market string

// The markets.
const (
	Spot     Market = "Spot"
	OnDemand Market = "OnDemand"
)

// Price is what an hour of an instance costs in US dollars. What is nil is not known.
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

// Placement is where, what and how an instance is launched.
type Placement struct {
	Zone         string `json:"zone"`
	Subnet       string `json:"subnet,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	Market       Market `json:"market"`
}

// Quota is what an instance type counts against.
type Quota struct {
	Group string // of the types that are limited together; "" = all types of a market are
	VCPUs int64  // that an instance takes of it
}

// Offer is a kind of instance that can be launched in a zone.
type Offer struct {
	Zone, Subnet, InstanceType string
}

// Shape is what a number of new nodes must be, or the pods that they are for could not run on them.
type Shape struct {
	Kinds []Kind // any of them will do
	Nodes int
}

// Kind is an instance type in a zone.
type Kind struct{ Zone, InstanceType string }

// Takes reports whether a placement is one of the kinds.
func (s Shape) Takes(p Placement) bool {
	return slices.Contains(s.Kinds, Kind{p.Zone, p.InstanceType})
}

// Unhelped is a pod that no new node of the pool could run; it is told and not counted.
type Unhelped struct{ Pod, Reason string }

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/prices"
)

// HourlyCost returns the hourly cost of nodes as text. A node with an unknown market counts as On-Demand, which costs
// at least as much as Spot.
func HourlyCost(nodes []Node, usd prices.Prices) string {
	total, untyped, unknown := 0.0, 0, 0
	missing := map[string]bool{}
	for _, n := range nodes {
		market := n.Market
		if market == "" {
			market = fleet.OnDemand
			unknown++
		}
		price := usd[n.InstanceType].Of(market)
		switch {
		case n.InstanceType == "":
			untyped++
		case price == nil:
			missing[n.InstanceType+" "+string(market)] = true
		default:
			total += *price
		}
	}
	switch {
	case untyped > 0:
		return fmt.Sprintf("unknown: the label %s is missing on %d", corev1.LabelInstanceTypeStable, untyped)
	case len(missing) > 0:
		return "unknown: there is no price of " + strings.Join(slices.Sorted(maps.Keys(missing)), ", ")
	case unknown > 0:
		return fmt.Sprintf("at most $%.2f an hour: no label shows whether %d of the nodes are Spot", total, unknown)
	}
	return fmt.Sprintf("$%.2f an hour", total)
}

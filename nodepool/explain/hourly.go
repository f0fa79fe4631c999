package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/foresail/foresail/nodepool/fleet"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/prices"
)

// HourlyCost says what an hour of some nodes costs. A node of which the market is not known costs what it would On-Demand, which
// Spot does not exceed.
func HourlyCost(nodes []Node, usd prices.Prices) string {
	total, untyped, unsure := 0.0, 0, 0
	missing := map[string]bool{}
	for _, n := range nodes {
		market := n.Market
		if market == "" {
			market = fleet.OnDemand
			unsure++
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
	case unsure > 0:
		return fmt.Sprintf("at most $%.2f an hour: no label says whether %d of the nodes are Spot", total, unsure)
	}
	return fmt.Sprintf("$%.2f an hour", total)
}

package awstest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// fleet is the fleet of a token. Its lock is held while the token is used.
type fleet struct {
	sync.Mutex
	params url.Values // nil: there is no fleet
	reply  *answer
}

const totalCapacity = "TargetCapacitySpecification.TotalTargetCapacity"

// fleets answers CreateFleet for fleets of the type instant. moto supports neither their tokens nor
// shortages.
type fleets struct {
	*ec2Service
	prices *priceList

	mu     sync.Mutex
	tokens map[string]*fleet // in their region
}

// override is an instance type in a subnet that a fleet chooses among.
type override struct{ kind, subnet, zone string }

// create creates a fleet. A token belongs to its region. A fleet that launches nothing has used its
// token too.
func (s *fleets) create(ctx context.Context, call *Call) *answer {
	token := call.Params.Get("ClientToken")
	if len(token) > 64 {
		return failure(call, http.StatusBadRequest, "InvalidParameterValue", "a client token has at most 64 characters")
	}
	known := new(fleet)
	if token != "" {
		key := call.Region + " " + token
		s.mu.Lock()
		if s.tokens[key] == nil {
			s.tokens[key] = known
		}
		known = s.tokens[key]
		s.mu.Unlock()
	}
	known.Lock()
	defer known.Unlock()
	switch {
	case known.params == nil:
		reply := s.newFleet(ctx, call)
		if reply.status == http.StatusOK {
			known.params, known.reply = maps.Clone(call.Params), reply
		}
		return reply
	case !maps.EqualFunc(known.params, call.Params, slices.Equal):
		return failure(call, http.StatusBadRequest, "IdempotentParameterMismatch",
			"the client token was used with other parameters")
	}
	return known.reply
}

func (s *fleets) newFleet(ctx context.Context, call *Call) *answer {
	overrides, reply := s.overridesOf(ctx, call)
	if reply != nil {
		return reply
	}
	market := call.Params.Get("TargetCapacitySpecification.DefaultTargetCapacityType")
	s.inOrder(overrides, market, call.Params)
	instances, errs := element("fleetInstanceSet"), element("errorSet")
	for _, o := range overrides {
		chosen := element("launchTemplateAndOverrides",
			element("overrides", textOf("instanceType", o.kind), textOf("subnetId", o.subnet)))
		code, message, ids := s.short(o.kind, o.zone, market), "there is a shortage", []string(nil)
		if code == "" {
			code, message, ids = s.launchOverride(ctx, call, o, market)
		}
		if code != "" {
			errs.Nodes = append(errs.Nodes, element("item", chosen, textOf("lifecycle", market),
				textOf("errorCode", code), textOf("errorMessage", message)))
			continue
		}
		list := element("instanceIds")
		for _, id := range ids {
			list.Nodes = append(list.Nodes, textOf("item", id))
		}
		instances.Nodes = append(instances.Nodes, element("item", chosen, textOf("lifecycle", market), list,
			textOf("instanceType", o.kind)))
		break
	}
	id := textOf("fleetId", "fleet-12345678-1234-1234-1234-123456789012")
	tree := element("CreateFleetResponse", id, errs, instances)
	return &answer{http.StatusOK, xmlType, tree.bytes()}
}

// overridesOf returns the overrides of a call, or the error that EC2 would return.
func (s *fleets) overridesOf(ctx context.Context, call *Call) ([]override, *answer) {
	reject := func(format string, args ...any) ([]override, *answer) {
		return nil, failure(call, http.StatusBadRequest, "InvalidParameterValue", fmt.Sprintf(format, args...))
	}
	if kind := call.Params.Get("Type"); kind != "instant" {
		return reject("fleets of type %q are not supported", kind)
	}
	if n, err := strconv.Atoi(call.Params.Get(totalCapacity)); err != nil || n < 1 {
		return reject("a fleet of %q instances is not supported", call.Params.Get(totalCapacity))
	}
	var out []override
	zones := map[string]string{}
	for i := 1; ; i++ {
		prefix := fmt.Sprintf("LaunchTemplateConfigs.1.Overrides.%d.", i)
		o := override{kind: call.Params.Get(prefix + "InstanceType"), subnet: call.Params.Get(prefix + "SubnetId")}
		if o.kind == "" {
			break
		}
		zone, reply := s.zoneOfSubnet(ctx, call, o.subnet)
		if reply != nil {
			return nil, reply
		}
		o.zone = zone
		switch {
		case slices.Contains(out, o):
			return reject("the override %v is named twice", o)
		case cmp.Or(zones[zone], o.subnet) != o.subnet:
			return reject("%s has two subnets", zone)
		}
		zones[zone] = o.subnet
		out = append(out, o)
	}
	if len(out) == 0 {
		return reject("a fleet without overrides is not supported")
	}
	return out, nil
}

// inOrder sorts by price if the allocation strategy requires it. All overrides have the same capacity.
func (s *fleets) inOrder(overrides []override, market string, params url.Values) {
	usd := func(o override) float64 { return s.prices.of(o.kind, o.zone, market) }
	strategy := params.Get("OnDemandOptions.AllocationStrategy")
	if market == "spot" {
		strategy = params.Get("SpotOptions.AllocationStrategy")
	}
	if strategy == "price-capacity-optimized" || strategy == "lowest-price" {
		slices.SortStableFunc(overrides, func(a, b override) int { return cmp.Compare(usd(a), usd(b)) })
	}
}

// runInput returns the parameters of RunInstances for an override of a fleet.
func runInput(call *Call, o override, market string) url.Values {
	params := url.Values{
		"Action": {"RunInstances"}, "Version": {call.Params.Get("Version")}, "MinCount": {"1"},
		"MaxCount":     {call.Params.Get(totalCapacity)},
		"InstanceType": {o.kind}, "SubnetId": {o.subnet},
	}
	const template = "LaunchTemplateConfigs.1.LaunchTemplateSpecification."
	for _, key := range []string{"LaunchTemplateId", "Version"} {
		if value := call.Params.Get(template + key); value != "" {
			params.Set("LaunchTemplate."+key, value)
		}
	}
	if market == "spot" {
		params.Set("InstanceMarketOptions.MarketType", "spot")
	}
	n := 0
	for i := 1; call.Params.Has(fmt.Sprintf("TagSpecification.%d.ResourceType", i)); i++ {
		from := fmt.Sprintf("TagSpecification.%d.", i)
		if call.Params.Get(from+"ResourceType") == "fleet" {
			continue
		}
		n++
		for key, values := range call.Params {
			if rest, ok := strings.CutPrefix(key, from); ok {
				params[fmt.Sprintf("TagSpecification.%d.%s", n, rest)] = values
			}
		}
	}
	return params
}

// launchOverride launches instances, or returns moto's error.
func (s *fleets) launchOverride(
	ctx context.Context, call *Call, o override, market string,
) (code, message string, ids []string) {
	reply := s.query(ctx, call, EC2, allOf(runInput(call, o, market)))
	tree, err := parseXML(reply.body)
	switch {
	case err != nil:
		return "InternalError", err.Error(), nil
	case reply.status != http.StatusOK:
		failed := tree.child("Errors").child("Error")
		return cmp.Or(failed.text("Code"), "InternalError"), failed.text("Message"), nil
	}
	return "", "", s.launched(tree)
}

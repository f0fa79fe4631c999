package awstest

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// fleet is what became of a token of CreateFleet. Its lock is held while it is being used.
type fleet struct {
	sync.Mutex
	params url.Values // nil: there is no fleet
	reply  *answer
}

const totalCapacity = "TargetCapacitySpecification.TotalTargetCapacity"

// override is one of the pools of capacity that a fleet chooses among.
type override struct{ kind, subnet, zone string }

// createFleet answers for fleets of the type instant; moto's honour neither tokens nor shortages. A
// token is one of the region. A fleet that launched nothing has used its token too.
func (c *Cloud) createFleet(ctx context.Context, call *Call) *answer {
	token := call.Params.Get("ClientToken")
	if len(token) > 64 {
		return failure(call, http.StatusBadRequest, "InvalidParameterValue", "a client token has at most 64 characters")
	}
	known := new(fleet)
	if token != "" {
		key := call.Region + " " + token
		c.mu.Lock()
		if c.ec2.fleets[key] == nil {
			c.ec2.fleets[key] = known
		}
		known = c.ec2.fleets[key]
		c.mu.Unlock()
	}
	known.Lock()
	defer known.Unlock()
	switch {
	case known.params == nil:
		reply := c.newFleet(ctx, call)
		if reply.status == http.StatusOK {
			known.params, known.reply = maps.Clone(call.Params), reply
		}
		return reply
	case !maps.EqualFunc(known.params, call.Params, slices.Equal):
		return failure(call, http.StatusBadRequest, "IdempotentParameterMismatch", "the client token was used with other parameters")
	}
	return known.reply
}

func (c *Cloud) newFleet(ctx context.Context, call *Call) *answer {
	overrides, reply := c.overridesOf(ctx, call)
	if reply != nil {
		return reply
	}
	market := call.Params.Get("TargetCapacitySpecification.DefaultTargetCapacityType")
	c.inOrder(overrides, market, call.Params)
	instances, errs := element("fleetInstanceSet"), element("errorSet")
	for _, o := range overrides {
		chosen := element("launchTemplateAndOverrides", element("overrides", textOf("instanceType", o.kind), textOf("subnetId", o.subnet)))
		code, message, ids := c.short(o.kind, o.zone, market), "there is a shortage", []string(nil)
		if code == "" {
			code, message, ids = c.launchOverride(ctx, call, o, market)
		}
		if code != "" {
			errs.Nodes = append(errs.Nodes, element("item", chosen, textOf("lifecycle", market), textOf("errorCode", code), textOf("errorMessage", message)))
			continue
		}
		list := element("instanceIds")
		for _, id := range ids {
			list.Nodes = append(list.Nodes, textOf("item", id))
		}
		instances.Nodes = append(instances.Nodes, element("item", chosen, textOf("lifecycle", market), list, textOf("instanceType", o.kind)))
		break
	}
	tree := element("CreateFleetResponse", textOf("fleetId", "fleet-12345678-1234-1234-1234-123456789012"), errs, instances)
	return &answer{http.StatusOK, xmlType, tree.bytes()}
}

// overridesOf returns the pools of capacity of a call that EC2 would take.
func (c *Cloud) overridesOf(ctx context.Context, call *Call) ([]override, *answer) {
	refuse := func(format string, args ...any) ([]override, *answer) {
		return nil, failure(call, http.StatusBadRequest, "InvalidParameterValue", fmt.Sprintf(format, args...))
	}
	if kind := call.Params.Get("Type"); kind != "instant" {
		return refuse("fleets of type %q are not played", kind)
	}
	if n, err := strconv.Atoi(call.Params.Get(totalCapacity)); err != nil || n < 1 {
		return refuse("a fleet of %q instances is not played", call.Params.Get(totalCapacity))
	}
	var out []override
	zones := map[string]string{}
	for i := 1; ; i++ {
		prefix := fmt.Sprintf("LaunchTemplateConfigs.1.Overrides.%d.", i)
		o := override{kind: call.Params.Get(prefix + "InstanceType"), subnet: call.Params.Get(prefix + "SubnetId")}
		if o.kind == "" {
			break
		}
		zone, reply := c.zoneOfSubnet(ctx, call, o.subnet)
		if reply != nil {
			return nil, reply
		}
		o.zone = zone
		switch {
		case slices.Contains(out, o):
			return refuse("the pool %v is named twice", o)
		case cmp.Or(zones[zone], o.subnet) != o.subnet:
			return refuse("%s has two subnets", zone)
		}
		zones[zone] = o.subnet
		out = append(out, o)
	}
	if len(out) == 0 {
		return refuse("a fleet without overrides is not played")
	}
	return out, nil
}

// inOrder puts the cheapest first if the call asks for that, by what is sold; every pool is as deep as any other.
func (c *Cloud) inOrder(overrides []override, market string, params url.Values) {
	c.mu.Lock()
	defer c.mu.Unlock()
	usd := func(o override) float64 {
		price := c.ec2.prices[o.kind].OnDemand
		if market == "spot" {
			price = c.ec2.prices[o.kind].Spot[o.zone]
		}
		n, _ := strconv.ParseFloat(price, 64) // 0 where nothing is sold
		return n
	}
	strategy := params.Get("OnDemandOptions.AllocationStrategy")
	if market == "spot" {
		strategy = params.Get("SpotOptions.AllocationStrategy")
	}
	if strategy == "price-capacity-optimized" || strategy == "lowest-price" {
		slices.SortStableFunc(overrides, func(a, b override) int { return cmp.Compare(usd(a), usd(b)) })
	}
}

// runInput is the call of RunInstances that a fleet makes for one of its pools.
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

// launchOverride launches an instance, or tells why moto did not.
func (c *Cloud) launchOverride(ctx context.Context, call *Call, o override, market string) (code, message string, ids []string) {
	reply := c.query(ctx, call, EC2, allOf(runInput(call, o, market)))
	tree, err := parseXML(reply.body)
	switch {
	case err != nil:
		return "InternalError", err.Error(), nil
	case reply.status != http.StatusOK:
		failed := tree.child("Errors").child("Error")
		return cmp.Or(failed.text("Code"), "InternalError"), failed.text("Message"), nil
	}
	return "", "", c.launched(tree)
}

func element(name string, nodes ...*node) *node {
	return &node{XMLName: xml.Name{Local: name}, Nodes: nodes}
}

func textOf(name, text string) *node { return &node{XMLName: xml.Name{Local: name}, Text: text} }

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

// ec2State is what EC2 knows and moto does not.
type ec2State struct {
	shortages []*Shortage
	zones     map[string]string  // subnet → zone
	launches  map[string]*launch // of tokens, each in its region and zone
	fleets    map[string]*fleet  // of tokens, each in its region
	hiding    bool
	hidden    map[string]bool // ids of instances that cannot be seen yet
	statuses  []instanceStatus
	prices    map[string]Price
}

func newEC2State() ec2State {
	return ec2State{zones: map[string]string{}, launches: map[string]*launch{}, fleets: map[string]*fleet{}, hidden: map[string]bool{}}
}

// launch is what became of a token. Its lock is held while it is being used.
type launch struct {
	sync.Mutex
	params url.Values // nil: nothing has been launched
	ids    []string
}

// Shortage is why instances cannot be launched.
type Shortage struct {
	InstanceType, Zone, Market string // empty is any; a market is spot or on-demand
	// Code is EC2's, such as InsufficientInstanceCapacity, InsufficientFreeAddressesInSubnet, VcpuLimitExceeded,
	// MaxSpotInstanceCountExceeded; empty is the first.
	Code string
}

// Short has launches fail, from now on, until end is called.
func (c *Cloud) Short(s Shortage) (end func()) {
	if s.Code == "" {
		s.Code = "InsufficientInstanceCapacity"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ec2.shortages = append(c.ec2.shortages, &s)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ec2.shortages = slices.DeleteFunc(c.ec2.shortages, func(o *Shortage) bool { return o == &s })
	}
}

// HideNew keeps instances that are launched from now on from being seen, tagged and terminated, as EC2 is consistent only
// after a while, until reveal is called.
func (c *Cloud) HideNew() (reveal func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ec2.hiding = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ec2.hiding = false
		clear(c.ec2.hidden)
	}
}

func (c *Cloud) answerEC2(ctx context.Context, call *Call) *answer {
	switch call.Operation {
	case "RunInstances":
		return c.runInstances(ctx, call)
	case "CreateFleet":
		return c.createFleet(ctx, call)
	case "DescribeInstances":
		if reply := c.notFound(call, "InstanceId"); reply != nil {
			return reply
		}
		return c.withoutHidden(c.query(ctx, call, EC2, call.Params))
	case "DescribeInstanceStatus":
		return c.describeStatus(call)
	case "DescribeInstanceTypes", "DescribeInstanceTypeOfferings":
		return c.paged(ctx, call)
	case "DescribeSpotPriceHistory":
		if c.sells() {
			return c.spotPrices(call.Params)
		}
	case "TerminateInstances":
		if reply := c.notFound(call, "InstanceId"); reply != nil {
			return reply
		}
	case "CreateTags":
		if reply := c.notFound(call, "ResourceId"); reply != nil {
			return reply
		}
	}
	return c.query(ctx, call, EC2, call.Params)
}

// paged answers a call page by page as it asks for, which moto does not. What moto says of instance types is the same for
// all accounts and takes it seconds, so it is asked once. A token is where the next page begins.
func (c *Cloud) paged(ctx context.Context, call *Call) *answer {
	params := maps.Clone(call.Params)
	size, err := strconv.Atoi(params.Get("MaxResults"))
	if err != nil {
		return c.query(ctx, call, EC2, params)
	}
	from, _ := strconv.Atoi(params.Get("NextToken")) // 0 without one
	params.Del("MaxResults")
	params.Del("NextToken")
	key := call.Region + " " + params.Encode()
	c.moto.mu.Lock()
	defer c.moto.mu.Unlock()
	whole := c.moto.lists[key]
	if whole == nil {
		reply := c.query(ctx, call, EC2, params)
		if reply.status != http.StatusOK {
			return reply
		}
		if whole, err = parseXML(reply.body); err != nil {
			return unreachable(call, err)
		}
		c.moto.lists[key] = whole
	}
	page := &node{XMLName: whole.XMLName}
	for _, child := range whole.Nodes {
		if strings.HasSuffix(child.XMLName.Local, "Set") {
			rest := child.Nodes[min(from, len(child.Nodes)):]
			child = &node{XMLName: child.XMLName, Nodes: rest[:min(size, len(rest))]}
			if len(rest) > size {
				page.Nodes = append(page.Nodes, child)
				child = &node{XMLName: xml.Name{Local: "nextToken"}, Text: strconv.Itoa(from + size)}
			}
		}
		page.Nodes = append(page.Nodes, child)
	}
	return &answer{http.StatusOK, xmlType, page.bytes()}
}

// runInstances honours tokens, which moto only stores, and shortages. A token is one of a zone where the call names a
// subnet or a zone, and of the region otherwise. A launch that failed has not used its token.
func (c *Cloud) runInstances(ctx context.Context, call *Call) *answer {
	zone, reply := c.zoneOf(ctx, call)
	if reply != nil {
		return reply
	}
	token := call.Params.Get("ClientToken")
	if token == "" {
		return c.launch(ctx, call, zone, new(launch))
	}
	if len(token) > 64 {
		return failure(call, http.StatusBadRequest, "InvalidParameterValue", "a client token has at most 64 characters")
	}
	key := call.Region + " " + zone + " " + token
	c.mu.Lock()
	known := c.ec2.launches[key]
	if known == nil {
		known = new(launch)
		c.ec2.launches[key] = known
	}
	c.mu.Unlock()
	known.Lock()
	defer known.Unlock()
	if known.params == nil {
		return c.launch(ctx, call, zone, known)
	}
	if !maps.EqualFunc(known.params, call.Params, slices.Equal) {
		return failure(call, http.StatusBadRequest, "IdempotentParameterMismatch", "the client token was used with other parameters")
	}
	return c.launchedBefore(ctx, call, known.ids)
}

// launch launches instances and remembers them.
func (c *Cloud) launch(ctx context.Context, call *Call, zone string, l *launch) *answer {
	if short := c.short(call.Params.Get("InstanceType"), zone, cmp.Or(call.Params.Get("InstanceMarketOptions.MarketType"), "on-demand")); short != "" {
		return failure(call, shortageStatus(short), short, "there is a shortage")
	}
	reply := c.query(ctx, call, EC2, allOf(call.Params))
	if reply.status != http.StatusOK {
		return reply
	}
	tree, err := parseXML(reply.body)
	if err != nil {
		return unreachable(call, err)
	}
	l.params, l.ids = maps.Clone(call.Params), c.launched(tree)
	return reply
}

// allOf returns the parameters of a launch of as many instances as it may have. EC2 launches those if it can, and moto
// as few as the call allows.
func allOf(params url.Values) url.Values {
	out := maps.Clone(params)
	if most := params.Get("MaxCount"); most != "" {
		out.Set("MinCount", most)
	}
	return out
}

// launched returns the instances of an answer of moto's, which may be hidden from now on.
func (c *Cloud) launched(tree *node) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, item := range tree.child("instancesSet").items() {
		id := item.text("instanceId")
		ids = append(ids, id)
		c.ec2.hidden[id] = c.ec2.hiding
	}
	return ids
}

// shortageStatus is 500 where EC2 takes the fault upon itself.
func shortageStatus(code string) int {
	if code == "InsufficientInstanceCapacity" {
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// launchedBefore answers with the instances that a token has launched, as they are now.
func (c *Cloud) launchedBefore(ctx context.Context, call *Call, ids []string) *answer {
	params := url.Values{"Action": {"DescribeInstances"}, "Version": {call.Params.Get("Version")}}
	for i, id := range ids {
		params.Set(fmt.Sprintf("InstanceId.%d", i+1), id)
	}
	reply := c.query(ctx, call, EC2, params)
	if reply.status != http.StatusOK {
		return reply
	}
	tree, err := parseXML(reply.body)
	if err != nil {
		return unreachable(call, err)
	}
	reservation := tree.child("reservationSet").items()[0]
	for _, instance := range reservation.child("instancesSet").items() {
		if instance.child("instanceState").text("name") == "terminated" {
			return failure(call, http.StatusBadRequest, "IdempotentInstanceTerminated", "the instance of the client token has been terminated")
		}
	}
	reservation.XMLName = xml.Name{Local: "RunInstancesResponse"}
	return &answer{http.StatusOK, xmlType, reservation.bytes()}
}

func (c *Cloud) short(kind, zone, market string) (code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.ec2.shortages {
		if matches(s.InstanceType, kind) && matches(s.Zone, zone) && matches(s.Market, market) {
			return s.Code
		}
	}
	return ""
}

func matches(want, got string) bool { return want == "" || want == got }

// zoneOf returns where a launch goes; "" is the region.
func (c *Cloud) zoneOf(ctx context.Context, call *Call) (string, *answer) {
	subnet := call.Params.Get("SubnetId")
	if subnet == "" {
		return call.Params.Get("Placement.AvailabilityZone"), nil
	}
	return c.zoneOfSubnet(ctx, call, subnet)
}

func (c *Cloud) zoneOfSubnet(ctx context.Context, call *Call, subnet string) (string, *answer) {
	c.mu.Lock()
	zone := c.ec2.zones[subnet]
	c.mu.Unlock()
	if zone != "" {
		return zone, nil
	}
	reply := c.query(ctx, call, EC2, url.Values{
		"Action": {"DescribeSubnets"}, "Version": {call.Params.Get("Version")}, "SubnetId.1": {subnet},
	})
	if reply.status != http.StatusOK {
		return "", reply
	}
	tree, err := parseXML(reply.body)
	if err != nil {
		return "", unreachable(call, err)
	}
	zone = tree.child("subnetSet").items()[0].text("availabilityZone")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ec2.zones[subnet] = zone
	return zone, nil
}

// notFound is the answer to a call that names an instance which cannot be seen yet; nil if it names none.
func (c *Cloud) notFound(call *Call, list string) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range values(call.Params, list) {
		if c.ec2.hidden[id] {
			return failure(call, http.StatusBadRequest, "InvalidInstanceID.NotFound", "The instance ID '"+id+"' does not exist")
		}
	}
	return nil
}

// withoutHidden takes instances that cannot be seen yet out of a list.
func (c *Cloud) withoutHidden(reply *answer) *answer {
	tree, err := parseXML(reply.body)
	if err != nil || reply.status != http.StatusOK {
		return reply
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	reservations := tree.child("reservationSet")
	if reservations == nil {
		return reply
	}
	reservations.Nodes = slices.DeleteFunc(reservations.Nodes, func(reservation *node) bool {
		set := reservation.child("instancesSet")
		set.Nodes = slices.DeleteFunc(set.Nodes, func(instance *node) bool { return c.ec2.hidden[instance.text("instanceId")] })
		return len(set.Nodes) == 0
	})
	return &answer{reply.status, reply.contentType, tree.bytes()}
}

// node is an element of XML.
type node struct {
	XMLName xml.Name
	Text    string  `xml:",chardata"`
	Nodes   []*node `xml:",any"`
}

func parseXML(data []byte) (*node, error) {
	tree := new(node)
	return tree, xml.Unmarshal(data, tree)
}

func (n *node) bytes() []byte {
	data, err := xml.Marshal(n)
	if err != nil {
		panic(err) // of a tree that was read
	}
	return data
}

// child returns the first child of a name; nil if there is none, whose children are none.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	for _, child := range n.Nodes {
		if child.XMLName.Local == name {
			return child
		}
	}
	return nil
}

func (n *node) items() []*node {
	if n == nil {
		return nil
	}
	return n.Nodes
}

func (n *node) text(name string) string {
	if child := n.child(name); child != nil {
		return strings.TrimSpace(child.Text)
	}
	return ""
}

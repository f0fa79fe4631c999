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

// ec2Service is moto's EC2 with features that moto lacks: client tokens, shortages and delayed visibility.
type ec2Service struct {
	*backend

	mu        sync.Mutex
	shortages []*Shortage
	zones     map[string]string  // subnet → zone
	launches  map[string]*launch // by token, in its region and zone
	hiding    bool
	hidden    map[string]bool // ids of instances that are not visible yet
}

func newEC2Service(b *backend) *ec2Service {
	return &ec2Service{
		backend: b, zones: map[string]string{}, launches: map[string]*launch{}, hidden: map[string]bool{},
	}
}

// launch is the launch of a token. Its lock is held while the token is used.
type launch struct {
	sync.Mutex
	params url.Values // nil: nothing was launched
	ids    []string
}

// Shortage is a reason why instances cannot be launched.
type Shortage struct {
	InstanceType, Zone, Market string // empty is any; the market is spot or on-demand
	// Code is EC2's error code, such as InsufficientInstanceCapacity, InsufficientFreeAddressesInSubnet,
	// VcpuLimitExceeded, MaxSpotInstanceCountExceeded; empty is the first.
	Code string
}

// Short makes launches fail until end is called.
func (s *ec2Service) Short(shortage Shortage) (end func()) {
	if shortage.Code == "" {
		shortage.Code = "InsufficientInstanceCapacity"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shortages = append(s.shortages, &shortage)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shortages = slices.DeleteFunc(s.shortages, func(o *Shortage) bool { return o == &shortage })
	}
}

// HideNew hides instances that are launched from now on until reveal is called: they cannot be
// listed, tagged or terminated, as in EC2, which is eventually consistent.
func (s *ec2Service) HideNew() (reveal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hiding = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hiding = false
		clear(s.hidden)
	}
}

// instances answers a call about existing instances.
func (s *ec2Service) instances(ctx context.Context, call *Call) *answer {
	list := "InstanceId"
	if call.Operation == "CreateTags" {
		list = "ResourceId"
	}
	if reply := s.notFound(call, list); reply != nil {
		return reply
	}
	reply := s.query(ctx, call, EC2, call.Params)
	if call.Operation == "DescribeInstances" {
		return s.withoutHidden(reply)
	}
	return reply
}

// paged answers a call in pages, which moto does not support. moto's instance types are the same
// for all accounts and take it seconds, so they are cached. A token is the index at which the next
// page begins.
func (s *ec2Service) paged(ctx context.Context, call *Call) *answer {
	params := maps.Clone(call.Params)
	size, err := strconv.Atoi(params.Get("MaxResults"))
	if err != nil {
		return s.query(ctx, call, EC2, params)
	}
	from, _ := strconv.Atoi(params.Get("NextToken")) // 0 without one
	params.Del("MaxResults")
	params.Del("NextToken")
	key := call.Region + " " + params.Encode()
	s.moto.mu.Lock()
	defer s.moto.mu.Unlock()
	whole := s.moto.lists[key]
	if whole == nil {
		reply := s.query(ctx, call, EC2, params)
		if reply.status != http.StatusOK {
			return reply
		}
		if whole, err = parseXML(reply.body); err != nil {
			return unreachable(call, err)
		}
		s.moto.lists[key] = whole
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

// runInstances supports tokens, which moto only stores, and shortages. A token belongs to a zone if
// the call names a subnet or a zone, and otherwise to the region. A failed launch has not used its
// token.
func (s *ec2Service) runInstances(ctx context.Context, call *Call) *answer {
	zone, reply := s.zoneOf(ctx, call)
	if reply != nil {
		return reply
	}
	token := call.Params.Get("ClientToken")
	if token == "" {
		return s.launch(ctx, call, zone, new(launch))
	}
	if len(token) > 64 {
		return failure(call, http.StatusBadRequest, "InvalidParameterValue", "a client token has at most 64 characters")
	}
	key := call.Region + " " + zone + " " + token
	s.mu.Lock()
	known := s.launches[key]
	if known == nil {
		known = new(launch)
		s.launches[key] = known
	}
	s.mu.Unlock()
	known.Lock()
	defer known.Unlock()
	if known.params == nil {
		return s.launch(ctx, call, zone, known)
	}
	if !maps.EqualFunc(known.params, call.Params, slices.Equal) {
		return failure(call, http.StatusBadRequest, "IdempotentParameterMismatch",
			"the client token was used with other parameters")
	}
	return s.launchedBefore(ctx, call, known.ids)
}

// launch launches instances and records them.
func (s *ec2Service) launch(ctx context.Context, call *Call, zone string, l *launch) *answer {
	market := cmp.Or(call.Params.Get("InstanceMarketOptions.MarketType"), "on-demand")
	if short := s.short(call.Params.Get("InstanceType"), zone, market); short != "" {
		return failure(call, shortageStatus(short), short, "there is a shortage")
	}
	reply := s.query(ctx, call, EC2, allOf(call.Params))
	if reply.status != http.StatusOK {
		return reply
	}
	tree, err := parseXML(reply.body)
	if err != nil {
		return unreachable(call, err)
	}
	l.params, l.ids = maps.Clone(call.Params), s.launched(tree)
	return reply
}

// allOf returns the parameters of a launch of the maximum number of instances. EC2 launches the
// maximum if it can, and moto the minimum.
func allOf(params url.Values) url.Values {
	out := maps.Clone(params)
	if limit := params.Get("MaxCount"); limit != "" {
		out.Set("MinCount", limit)
	}
	return out
}

// launched returns the ids of the instances in moto's answer, and hides them if requested.
func (s *ec2Service) launched(tree *node) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range tree.child("instancesSet").items() {
		id := item.text("instanceId")
		ids = append(ids, id)
		s.hidden[id] = s.hiding
	}
	return ids
}

// shortageStatus returns 500 for errors of EC2 itself.
func shortageStatus(code string) int {
	if code == "InsufficientInstanceCapacity" {
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// launchedBefore answers with the instances that a token has launched, in their current state.
func (s *ec2Service) launchedBefore(ctx context.Context, call *Call, ids []string) *answer {
	params := url.Values{"Action": {"DescribeInstances"}, "Version": {call.Params.Get("Version")}}
	for i, id := range ids {
		params.Set(fmt.Sprintf("InstanceId.%d", i+1), id)
	}
	reply := s.query(ctx, call, EC2, params)
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
			return failure(call, http.StatusBadRequest, "IdempotentInstanceTerminated",
				"the instance of the client token has been terminated")
		}
	}
	reservation.XMLName = xml.Name{Local: "RunInstancesResponse"}
	return &answer{http.StatusOK, xmlType, reservation.bytes()}
}

func (s *ec2Service) short(kind, zone, market string) (code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.shortages {
		if matches(one.InstanceType, kind) && matches(one.Zone, zone) && matches(one.Market, market) {
			return one.Code
		}
	}
	return ""
}

func matches(want, got string) bool { return want == "" || want == got }

// zoneOf returns the zone of a launch; "" if it has none.
func (s *ec2Service) zoneOf(ctx context.Context, call *Call) (string, *answer) {
	subnet := call.Params.Get("SubnetId")
	if subnet == "" {
		return call.Params.Get("Placement.AvailabilityZone"), nil
	}
	return s.zoneOfSubnet(ctx, call, subnet)
}

func (s *ec2Service) zoneOfSubnet(ctx context.Context, call *Call, subnet string) (string, *answer) {
	s.mu.Lock()
	zone := s.zones[subnet]
	s.mu.Unlock()
	if zone != "" {
		return zone, nil
	}
	reply := s.query(ctx, call, EC2, url.Values{
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zones[subnet] = zone
	return zone, nil
}

// notFound returns the error of a call that names a hidden instance; nil if it names none.
func (s *ec2Service) notFound(call *Call, list string) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range values(call.Params, list) {
		if s.hidden[id] {
			return failure(call, http.StatusBadRequest, "InvalidInstanceID.NotFound",
				"The instance ID '"+id+"' does not exist")
		}
	}
	return nil
}

// withoutHidden removes hidden instances from a list.
func (s *ec2Service) withoutHidden(reply *answer) *answer {
	tree, err := parseXML(reply.body)
	if err != nil || reply.status != http.StatusOK {
		return reply
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reservations := tree.child("reservationSet")
	if reservations == nil {
		return reply
	}
	reservations.Nodes = slices.DeleteFunc(reservations.Nodes, func(reservation *node) bool {
		set := reservation.child("instancesSet")
		set.Nodes = slices.DeleteFunc(set.Nodes, func(instance *node) bool {
			return s.hidden[instance.text("instanceId")]
		})
		return len(set.Nodes) == 0
	})
	return &answer{reply.status, reply.contentType, tree.bytes()}
}

package awstest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/smithy-go/encoding/cbor"
)

// Policy is a policy document of IAM.
type Policy struct {
	Version   string
	Statement []Statement
}

// Statement allows actions on resources under conditions.
type Statement struct {
	Sid, Effect      string
	Action, Resource Strings
	Condition        map[string]map[string]Strings // operator, key, values
}

// Strings is a string or a list of them.
type Strings []string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Strings) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = Strings{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// Right is what a call needs: an action on a resource, with what conditions look at.
type Right struct {
	Action, Resource string
	Context          map[string]Strings
}

// Allows returns whether the policy has a statement for the right. Denials are not played.
func (p Policy) Allows(r Right) bool {
	return slices.ContainsFunc(p.Statement, func(s Statement) bool {
		return s.Effect == "Allow" && anyLike(s.Action, r.Action) && anyLike(s.Resource, r.Resource) && s.holds(r.Context)
	})
}

// holds returns whether all conditions are met. A key that a request does not have meets none.
func (s Statement) holds(context map[string]Strings) bool {
	for operator, keys := range s.Condition {
		for key, want := range keys {
			if !meets(operator, context[key], want) {
				return false
			}
		}
	}
	return true
}

func meets(operator string, has, want Strings) bool {
	among := func(value string) bool { return slices.Contains(want, value) }
	switch operator {
	case "StringEquals", "Bool":
		return len(has) == 1 && among(has[0])
	case "StringLike", "ArnEquals", "ArnLike":
		return len(has) == 1 && anyLike(want, has[0])
	case "ForAllValues:StringEquals":
		return !slices.ContainsFunc(has, func(value string) bool { return !among(value) })
	default:
		panic("a condition that is not played: " + operator)
	}
}

// anyLike returns whether a value matches a pattern in which * is anything and ? any character.
func anyLike(patterns Strings, value string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		quoted := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
		return regexp.MustCompile("(?s)^" + quoted + "$").MatchString(value)
	})
}

// Enforce refuses the calls from now on that a policy does not allow, as IAM would: moto looks at the names of actions, but
// at no resource and no condition. It returns the rights that calls needed so far.
func (c *Cloud) Enforce(p Policy) (needed func() []Right) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policy, c.needed = &p, nil
	return func() []Right {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.Clone(c.needed)
	}
}

// refused returns the answer to a call that the policy does not allow; nil if it does, or if none is enforced.
func (c *Cloud) refused(ctx context.Context, call *Call) *answer {
	c.mu.Lock()
	policy := c.policy
	c.mu.Unlock()
	if policy == nil {
		return nil
	}
	rights, err := c.rights(ctx, call)
	if err != nil {
		return failure(call, http.StatusNotImplemented, "", err.Error())
	}
	c.mu.Lock()
	c.needed = append(c.needed, rights...)
	c.mu.Unlock()
	for _, right := range rights {
		if !policy.Allows(right) {
			code := "AccessDeniedException"
			if call.Service == EC2 {
				code = "UnauthorizedOperation"
			}
			return failure(call, http.StatusForbidden, code, "not authorized: "+right.Action+" on "+right.Resource)
		}
	}
	return nil
}

// rights returns what a call needs, as the service authorization reference of AWS says.
func (c *Cloud) rights(ctx context.Context, call *Call) ([]Right, error) {
	common := map[string]Strings{"aws:RequestedRegion": {call.Region}}
	arn := func(service, resource string) string {
		return "arn:aws:" + service + ":" + call.Region + ":" + c.account + ":" + resource
	}
	one := func(action, resource string, context map[string]Strings) []Right {
		maps.Copy(context, common)
		return []Right{{action, resource, context}}
	}
	var body struct {
		QueueUrl, TableName string //nolint:revive // as SQS calls it
		Key                 map[string]map[string]string
	}
	if call.Service == SQS || call.Service == DynamoDB {
		if err := json.Unmarshal(call.Body, &body); err != nil {
			return nil, err
		}
	}
	action := call.Service + ":" + call.Operation
	switch call.Operation {
	case "RunInstances":
		return c.rightsToLaunch(ctx, call, arn, common, "RunInstances")
	case "CreateFleet":
		return c.rightsToFleet(ctx, call, arn, common)
	case "TerminateInstances", "CreateTags":
		list := map[string]string{"TerminateInstances": "InstanceId", "CreateTags": "ResourceId"}[call.Operation]
		var rights []Right
		for _, id := range values(call.Params, list) {
			context, err := c.resourceTags(ctx, call, id)
			if err != nil {
				return nil, err
			}
			for key := range requestTags(call.Params, "Tag.") {
				context["aws:TagKeys"] = append(context["aws:TagKeys"], key)
			}
			rights = append(rights, one(action, arn("ec2", "instance/"+id), context)...)
		}
		return rights, nil
	case "DescribeInstances", "DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeInstanceStatus", "DescribeLaunchTemplates",
		"DescribeLaunchTemplateVersions", "DescribeImages", "DescribeSpotPriceHistory", "GetProducts":
		return one(action, "*", map[string]Strings{}), nil
	case "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch":
		return one(strings.TrimSuffix(action, "Batch"), arn("sqs", path.Base(body.QueueUrl)), map[string]Strings{}), nil
	case "GetItem", "UpdateItem":
		var keys Strings
		for _, value := range body.Key {
			keys = append(keys, value["S"])
		}
		return one(action, arn("dynamodb", "table/"+body.TableName), map[string]Strings{"dynamodb:LeadingKeys": keys}), nil
	case "PutMetricData":
		input, err := cbor.Decode(call.Body)
		if err != nil {
			return nil, err
		}
		params := url.Values{}
		flatten(params, "", input)
		return one(action, "*", map[string]Strings{"cloudwatch:namespace": {params.Get("Namespace")}}), nil
	default:
		return nil, fmt.Errorf("which rights does %s need? Add it to rights in test/aws/iam.go", action)
	}
}

// rightsToLaunch are a right on each resource that a launch uses or makes, on their tags, and on the role that they get.
func (c *Cloud) rightsToLaunch(ctx context.Context, call *Call, arn func(service, resource string) string, common map[string]Strings, createActions ...string) ([]Right, error) {
	id := call.Params.Get("LaunchTemplate.LaunchTemplateId")
	template := &node{}
	if id != "" {
		reply := c.query(ctx, call, EC2, url.Values{"Action": {"DescribeLaunchTemplateVersions"}, "Version": {call.Params.Get("Version")}, "LaunchTemplateId": {id}})
		tree, err := parseXML(reply.body)
		if err != nil {
			return nil, err
		}
		if versions := tree.child("launchTemplateVersionSet").items(); len(versions) > 0 {
			template = versions[len(versions)-1].child("launchTemplateData")
		}
	}
	var rights []Right
	add := func(action, resource string, more map[string]Strings) {
		context := maps.Clone(common)
		if id != "" {
			context["ec2:LaunchTemplate"] = Strings{arn("ec2", "launch-template/"+id)}
		}
		maps.Copy(context, more)
		rights = append(rights, Right{action, resource, context})
	}
	// ofTemplate adds a resource that the call names, or else the template.
	ofTemplate := func(resource, named, templated string) {
		if named+templated == "" {
			return
		}
		if named != "" {
			templated = named
		}
		add("ec2:RunInstances", resource+templated, map[string]Strings{"ec2:IsLaunchTemplateResource": {fmt.Sprint(named == "")}})
	}
	if id != "" {
		add("ec2:RunInstances", arn("ec2", "launch-template/"+id), nil)
	}
	ofTemplate("arn:aws:ec2:"+call.Region+"::image/", call.Params.Get("ImageId"), template.text("imageId"))
	ofTemplate(arn("ec2", "key-pair/"), call.Params.Get("KeyName"), template.text("keyName"))
	for _, group := range values(call.Params, "SecurityGroupId") {
		ofTemplate(arn("ec2", "security-group/"), group, "")
	}
	for _, group := range template.child("securityGroupIdSet").items() {
		ofTemplate(arn("ec2", "security-group/"), "", strings.TrimSpace(group.Text))
	}
	ofTemplate(arn("ec2", "subnet/"), call.Params.Get("SubnetId"), "")
	add("ec2:RunInstances", arn("ec2", "network-interface/*"), nil)
	if call.Params.Get("InstanceMarketOptions.MarketType") == "spot" {
		rights = append(rights, Right{"ec2:RunInstances", arn("ec2", "spot-instances-request/*"), common})
	}
	for _, kind := range []string{"instance", "volume"} {
		tags := map[string]Strings{}
		for i := 1; call.Params.Has(fmt.Sprintf("TagSpecification.%d.ResourceType", i)); i++ {
			specification := fmt.Sprintf("TagSpecification.%d.", i)
			if call.Params.Get(specification+"ResourceType") != kind {
				continue
			}
			for key, value := range requestTags(call.Params, specification+"Tag.") {
				tags["aws:RequestTag/"+key] = Strings{value}
				tags["aws:TagKeys"] = append(tags["aws:TagKeys"], key)
			}
		}
		add("ec2:RunInstances", arn("ec2", kind+"/*"), tags)
		if len(tags) > 0 {
			for _, by := range createActions {
				context := maps.Clone(tags)
				context["ec2:CreateAction"] = Strings{by}
				add("ec2:CreateTags", arn("ec2", kind+"/*"), context)
			}
		}
	}
	profile := template.child("iamInstanceProfile").text("arn")
	if named := call.Params.Get("IamInstanceProfile.Arn"); named != "" {
		profile = named
	}
	if profile == "" {
		return rights, nil
	}
	reply := c.query(ctx, call, "iam", url.Values{"Action": {"GetInstanceProfile"}, "Version": {"2010-05-08"}, "InstanceProfileName": {path.Base(profile)}})
	tree, err := parseXML(reply.body)
	if err != nil {
		return nil, err
	}
	roles := tree.child("GetInstanceProfileResult").child("InstanceProfile").child("Roles").items()
	if len(roles) != 1 {
		return nil, fmt.Errorf("%s has %d roles", profile, len(roles))
	}
	rights = append(rights, Right{"iam:PassRole", roles[0].text("Arn"), map[string]Strings{"iam:PassedToService": {"ec2.amazonaws.com"}}})
	return rights, nil
}

// rightsToFleet are those to make a fleet, of which no condition knows the launch template, and those to launch any of its
// pools. AWS does not say which of the two calls is the one that tags its instances, so both are asked for.
func (c *Cloud) rightsToFleet(ctx context.Context, call *Call, arn func(service, resource string) string, common map[string]Strings) ([]Right, error) {
	overrides, reply := c.overridesOf(ctx, call)
	if reply != nil {
		return nil, fmt.Errorf("%s", reply.body)
	}
	var rights []Right
	add := func(action, resource string, more map[string]Strings) {
		context := maps.Clone(common)
		maps.Copy(context, more)
		rights = append(rights, Right{action, resource, context})
	}
	tags := map[string]Strings{}
	for i := 1; call.Params.Has(fmt.Sprintf("TagSpecification.%d.ResourceType", i)); i++ {
		specification := fmt.Sprintf("TagSpecification.%d.", i)
		if call.Params.Get(specification+"ResourceType") == "fleet" {
			for key, value := range requestTags(call.Params, specification+"Tag.") {
				tags["aws:RequestTag/"+key] = Strings{value}
			}
		}
	}
	add("ec2:CreateFleet", arn("ec2", "fleet/*"), tags)
	if len(tags) > 0 {
		tags = maps.Clone(tags)
		tags["ec2:CreateAction"] = Strings{"CreateFleet"}
		add("ec2:CreateTags", arn("ec2", "fleet/*"), tags)
	}
	launch := *call
	for _, o := range overrides {
		launch.Params = runInput(call, o, call.Params.Get("TargetCapacitySpecification.DefaultTargetCapacityType"))
		more, err := c.rightsToLaunch(ctx, &launch, arn, common, "RunInstances", "CreateFleet")
		if err != nil {
			return nil, err
		}
		for _, r := range more {
			if r.Action == "ec2:RunInstances" {
				context := maps.Clone(r.Context)
				delete(context, "ec2:LaunchTemplate")
				delete(context, "ec2:IsLaunchTemplateResource")
				rights = append(rights, Right{"ec2:CreateFleet", r.Resource, context})
			}
		}
		rights = append(rights, more...)
	}
	return rights, nil
}

// requestTags are those that a call has after a prefix.
func requestTags(params url.Values, prefix string) map[string]string {
	tags := map[string]string{}
	for i := 1; params.Has(fmt.Sprintf("%s%d.Key", prefix, i)); i++ {
		tags[params.Get(fmt.Sprintf("%s%d.Key", prefix, i))] = params.Get(fmt.Sprintf("%s%d.Value", prefix, i))
	}
	return tags
}

// resourceTags are those of an instance as conditions see them. One that there is not has none.
func (c *Cloud) resourceTags(ctx context.Context, call *Call, id string) (map[string]Strings, error) {
	reply := c.query(ctx, call, EC2, url.Values{
		"Action": {"DescribeTags"}, "Version": {call.Params.Get("Version")}, "Filter.1.Name": {"resource-id"}, "Filter.1.Value.1": {id},
	})
	tree, err := parseXML(reply.body)
	if err != nil {
		return nil, err
	}
	tags := map[string]Strings{}
	for _, item := range tree.child("tagSet").items() {
		tags["aws:ResourceTag/"+item.text("key")] = Strings{item.text("value")}
	}
	return tags, nil
}

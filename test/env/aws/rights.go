package awstest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"strings"

	"github.com/aws/smithy-go/encoding/cbor"
)

// rightsOf returns the rights that a call needs, by AWS's service authorization reference.
type rightsOf struct {
	fleets *fleets
	call   *Call
}

func (r rightsOf) arn(service, resource string) string {
	return "arn:aws:" + service + ":" + r.call.Region + ":" + r.fleets.account + ":" + resource
}

// right returns a right with a context, to which it adds that of every call.
func (r rightsOf) right(action, resource string, contexts ...map[string]Strings) Right {
	all := map[string]Strings{"aws:RequestedRegion": {r.call.Region}}
	for _, context := range contexts {
		maps.Copy(all, context)
	}
	return Right{action, resource, all}
}

// all returns the rights that the call needs.
func (r rightsOf) all(ctx context.Context) ([]Right, error) {
	action := r.call.Service + ":" + r.call.Operation
	switch r.call.Operation {
	case "RunInstances":
		return r.launch(ctx, r.call.Params, "RunInstances")
	case "CreateFleet":
		return r.fleet(ctx)
	case "TerminateInstances":
		return r.change(ctx, action, "InstanceId")
	case "CreateTags":
		return r.change(ctx, action, "ResourceId")
	case "DescribeInstances", "DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeInstanceStatus",
		"DescribeLaunchTemplates", "DescribeLaunchTemplateVersions", "DescribeImages", "DescribeSpotPriceHistory",
		"GetProducts":
		return []Right{r.right(action, "*")}, nil
	case "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch":
		return r.queue(strings.TrimSuffix(action, "Batch"))
	case "GetItem", "UpdateItem":
		return r.table(action)
	case "PutMetricData":
		return r.metrics(action)
	default:
		return nil, fmt.Errorf("the rights for %s are unknown: add them to test/env/aws/rights.go", action)
	}
}

// change returns the rights to change the instances in a list of the call.
func (r rightsOf) change(ctx context.Context, action, list string) ([]Right, error) {
	var rights []Right
	for _, id := range values(r.call.Params, list) {
		tags, err := r.resourceTags(ctx, id)
		if err != nil {
			return nil, err
		}
		for key := range requestTags(r.call.Params, "Tag.") {
			tags["aws:TagKeys"] = append(tags["aws:TagKeys"], key)
		}
		rights = append(rights, r.right(action, r.arn("ec2", "instance/"+id), tags))
	}
	return rights, nil
}

func (r rightsOf) queue(action string) ([]Right, error) {
	var body struct {
		QueueUrl string //nolint:revive // SQS's name
	}
	if err := json.Unmarshal(r.call.Body, &body); err != nil {
		return nil, err
	}
	return []Right{r.right(action, r.arn("sqs", path.Base(body.QueueUrl)))}, nil
}

func (r rightsOf) table(action string) ([]Right, error) {
	var body struct {
		TableName string
		Key       map[string]map[string]string
	}
	if err := json.Unmarshal(r.call.Body, &body); err != nil {
		return nil, err
	}
	var keys Strings
	for _, value := range body.Key {
		keys = append(keys, value["S"])
	}
	table := r.arn("dynamodb", "table/"+body.TableName)
	return []Right{r.right(action, table, map[string]Strings{"dynamodb:LeadingKeys": keys})}, nil
}

func (r rightsOf) metrics(action string) ([]Right, error) {
	input, err := cbor.Decode(r.call.Body)
	if err != nil {
		return nil, err
	}
	params := url.Values{}
	flatten(params, "", input)
	return []Right{r.right(action, "*", map[string]Strings{"cloudwatch:namespace": {params.Get("Namespace")}})}, nil
}

// launch returns a right for each resource that a launch uses or creates, for their tags, and for their role.
func (r rightsOf) launch(ctx context.Context, params url.Values, createActions ...string) ([]Right, error) {
	id := params.Get("LaunchTemplate.LaunchTemplateId")
	template, err := r.template(ctx, id)
	if err != nil {
		return nil, err
	}
	launch := launchRights{rightsOf: r, params: params, template: template}
	if id != "" {
		arn := r.arn("ec2", "launch-template/"+id)
		launch.context = map[string]Strings{"ec2:LaunchTemplate": {arn}}
		launch.add("ec2:RunInstances", arn, nil)
	}
	launch.used()
	launch.created(createActions)
	profile := template.child("iamInstanceProfile").text("arn")
	if named := params.Get("IamInstanceProfile.Arn"); named != "" {
		profile = named
	}
	if profile == "" {
		return launch.rights, nil
	}
	role, err := r.role(ctx, profile)
	return append(launch.rights, role), err
}

// template returns the data of a launch template; empty for none.
func (r rightsOf) template(ctx context.Context, id string) (*node, error) {
	if id == "" {
		return &node{}, nil
	}
	reply := r.fleets.query(ctx, r.call, EC2, url.Values{
		"Action": {"DescribeLaunchTemplateVersions"}, "Version": {r.call.Params.Get("Version")},
		"LaunchTemplateId": {id},
	})
	tree, err := parseXML(reply.body)
	if err != nil {
		return nil, err
	}
	versions := tree.child("launchTemplateVersionSet").items()
	if len(versions) == 0 {
		return &node{}, nil
	}
	return versions[len(versions)-1].child("launchTemplateData"), nil
}

// role returns the right to pass the role of an instance profile.
func (r rightsOf) role(ctx context.Context, profile string) (Right, error) {
	reply := r.fleets.query(ctx, r.call, "iam", url.Values{
		"Action": {"GetInstanceProfile"}, "Version": {"2010-05-08"}, "InstanceProfileName": {path.Base(profile)},
	})
	tree, err := parseXML(reply.body)
	if err != nil {
		return Right{}, err
	}
	roles := tree.child("GetInstanceProfileResult").child("InstanceProfile").child("Roles").items()
	if len(roles) != 1 {
		return Right{}, fmt.Errorf("%s has %d roles", profile, len(roles))
	}
	return Right{
		"iam:PassRole", roles[0].text("Arn"), map[string]Strings{"iam:PassedToService": {"ec2.amazonaws.com"}},
	}, nil
}

// fleet returns the rights to create a fleet, whose conditions do not know the launch template, and
// those to launch each of its overrides. AWS does not document which of the two calls tags the
// instances, so both are required.
func (r rightsOf) fleet(ctx context.Context) ([]Right, error) {
	overrides, reply := r.fleets.overridesOf(ctx, r.call)
	if reply != nil {
		return nil, fmt.Errorf("%s", reply.body)
	}
	tags := taggedAs(r.call.Params, "fleet")
	delete(tags, "aws:TagKeys")
	rights := []Right{r.right("ec2:CreateFleet", r.arn("ec2", "fleet/*"), tags)}
	if len(tags) > 0 {
		created := map[string]Strings{"ec2:CreateAction": {"CreateFleet"}}
		rights = append(rights, r.right("ec2:CreateTags", r.arn("ec2", "fleet/*"), tags, created))
	}
	market := r.call.Params.Get("TargetCapacitySpecification.DefaultTargetCapacityType")
	for _, o := range overrides {
		more, err := r.launch(ctx, runInput(r.call, o, market), "RunInstances", "CreateFleet")
		if err != nil {
			return nil, err
		}
		for _, one := range more {
			if one.Action == "ec2:RunInstances" {
				context := maps.Clone(one.Context)
				delete(context, "ec2:LaunchTemplate")
				delete(context, "ec2:IsLaunchTemplateResource")
				rights = append(rights, Right{"ec2:CreateFleet", one.Resource, context})
			}
		}
		rights = append(rights, more...)
	}
	return rights, nil
}

// resourceTags returns the tags of an instance as conditions see them; none for an unknown instance.
func (r rightsOf) resourceTags(ctx context.Context, id string) (map[string]Strings, error) {
	reply := r.fleets.query(ctx, r.call, EC2, url.Values{
		"Action": {"DescribeTags"}, "Version": {r.call.Params.Get("Version")},
		"Filter.1.Name": {"resource-id"}, "Filter.1.Value.1": {id},
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

// launchRights collects the rights of a launch.
type launchRights struct {
	rightsOf
	params   url.Values
	template *node
	context  map[string]Strings // of every right
	rights   []Right
}

func (l *launchRights) add(action, resource string, context map[string]Strings) {
	l.rights = append(l.rights, l.right(action, resource, l.context, context))
}

// resource adds a resource that the call names, or else the template.
func (l *launchRights) resource(prefix, named, templated string) {
	name := named
	if name == "" {
		name = templated
	}
	if name != "" {
		ofTemplate := Strings{fmt.Sprint(named == "")}
		l.add("ec2:RunInstances", prefix+name, map[string]Strings{"ec2:IsLaunchTemplateResource": ofTemplate})
	}
}

// used adds the existing resources that the launch uses.
func (l *launchRights) used() {
	image := "arn:aws:ec2:" + l.call.Region + "::image/"
	l.resource(image, l.params.Get("ImageId"), l.template.text("imageId"))
	l.resource(l.arn("ec2", "key-pair/"), l.params.Get("KeyName"), l.template.text("keyName"))
	for _, group := range values(l.params, "SecurityGroupId") {
		l.resource(l.arn("ec2", "security-group/"), group, "")
	}
	for _, group := range l.template.child("securityGroupIdSet").items() {
		l.resource(l.arn("ec2", "security-group/"), "", strings.TrimSpace(group.Text))
	}
	l.resource(l.arn("ec2", "subnet/"), l.params.Get("SubnetId"), "")
}

// created adds the resources that the launch creates, with their tags.
func (l *launchRights) created(createActions []string) {
	l.add("ec2:RunInstances", l.arn("ec2", "network-interface/*"), nil)
	if l.params.Get("InstanceMarketOptions.MarketType") == "spot" {
		l.rights = append(l.rights, l.right("ec2:RunInstances", l.arn("ec2", "spot-instances-request/*")))
	}
	for _, kind := range []string{"instance", "volume"} {
		tags := taggedAs(l.params, kind)
		l.add("ec2:RunInstances", l.arn("ec2", kind+"/*"), tags)
		if len(tags) == 0 {
			continue
		}
		for _, by := range createActions {
			context := maps.Clone(tags)
			context["ec2:CreateAction"] = Strings{by}
			l.add("ec2:CreateTags", l.arn("ec2", kind+"/*"), context)
		}
	}
}

// taggedAs returns the tags that a call sets on a kind of resource, as conditions see them.
func taggedAs(params url.Values, kind string) map[string]Strings {
	tags := map[string]Strings{}
	for i := 1; params.Has(fmt.Sprintf("TagSpecification.%d.ResourceType", i)); i++ {
		specification := fmt.Sprintf("TagSpecification.%d.", i)
		if params.Get(specification+"ResourceType") != kind {
			continue
		}
		for key, value := range requestTags(params, specification+"Tag.") {
			tags["aws:RequestTag/"+key] = Strings{value}
			tags["aws:TagKeys"] = append(tags["aws:TagKeys"], key)
		}
	}
	return tags
}

// requestTags returns the tags of a call after a prefix.
func requestTags(params url.Values, prefix string) map[string]string {
	tags := map[string]string{}
	for i := 1; params.Has(fmt.Sprintf("%s%d.Key", prefix, i)); i++ {
		tags[params.Get(fmt.Sprintf("%s%d.Key", prefix, i))] = params.Get(fmt.Sprintf("%s%d.Value", prefix, i))
	}
	return tags
}

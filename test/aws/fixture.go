package awstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Network is what a pool is launched into.
type Network struct {
	Template string // id of a launch template with an image
	Subnets  []Subnet
}

// Subnet is one in a zone.
type Subnet struct{ Zone, ID string }

// Network makes a launch template, and tells the subnets of the three zones of [Region].
func (c *Cloud) Network(t testing.TB) Network {
	t.Helper()
	client := ec2.NewFromConfig(c.Direct())
	template, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("worker"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("ami-12c6146b"), InstanceType: types.InstanceTypeT3Small},
	})
	if err != nil {
		t.Fatal(err)
	}
	subnets, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	n := Network{Template: aws.ToString(template.LaunchTemplate.LaunchTemplateId)}
	for _, s := range subnets.Subnets {
		n.Subnets = append(n.Subnets, Subnet{Zone: aws.ToString(s.AvailabilityZone), ID: aws.ToString(s.SubnetId)})
	}
	return n
}

// Queue makes an SQS queue, in which a message that was received is hidden for the given time, and returns its URL.
func (c *Cloud) Queue(t testing.TB, name string, visibility time.Duration) string {
	t.Helper()
	queue, err := sqs.NewFromConfig(c.Direct()).CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName:  aws.String(name),
		Attributes: map[string]string{"VisibilityTimeout": fmt.Sprint(int(visibility.Seconds()))},
	})
	if err != nil {
		t.Fatal(err)
	}
	// moto names the address that it was asked at; clients shall ask here.
	return c.URL() + strings.TrimPrefix(aws.ToString(queue.QueueUrl), "http://"+c.moto.address)
}

// Send puts a message into a queue.
func (c *Cloud) Send(t testing.TB, queue, body string) {
	t.Helper()
	if _, err := sqs.NewFromConfig(c.Direct()).SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageBody: aws.String(body),
	}); err != nil {
		t.Fatal(err)
	}
}

// SpotInterruption is what EventBridge sends when EC2 will take an instance back, two minutes after at.
func (c *Cloud) SpotInterruption(instance string, at time.Time) string {
	return c.event("EC2 Spot Instance Interruption Warning", instance, at, map[string]string{"instance-action": "terminate"})
}

// RebalanceRecommendation is what EventBridge sends when EC2 expects to take an instance back.
func (c *Cloud) RebalanceRecommendation(instance string, at time.Time) string {
	return c.event("EC2 Instance Rebalance Recommendation", instance, at, nil)
}

// StateChange is what EventBridge sends when an instance has a new state, such as shutting-down.
func (c *Cloud) StateChange(instance, state string, at time.Time) string {
	return c.event("EC2 Instance State-change Notification", instance, at, map[string]string{"state": state})
}

// event is an event of EC2 in the form of EventBridge, which tells whole seconds.
func (c *Cloud) event(kind, instance string, at time.Time, more map[string]string) string {
	detail := map[string]string{"instance-id": instance}
	maps.Copy(detail, more)
	data, err := json.Marshal(map[string]any{
		"version": "0", "id": "12345678-1234-1234-1234-123456789012", "detail-type": kind, "source": "aws.ec2",
		"account": c.account, "time": at.UTC().Format(time.RFC3339), "region": Region,
		"resources": []string{"arn:aws:ec2:" + Region + ":" + c.account + ":instance/" + instance}, "detail": detail,
	})
	if err != nil {
		panic(err) // of strings
	}
	return string(data)
}

// TakeBack terminates an instance, as EC2 does two minutes after its warning.
func (c *Cloud) TakeBack(t testing.TB, instance string) {
	t.Helper()
	_, err := ec2.NewFromConfig(c.Direct()).TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		t.Fatal(err)
	}
}

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

// Network is the network of a pool.
type Network struct {
	Template string // id of a launch template with an image
	Subnets  []Subnet
}

// Subnet is a subnet of a zone.
type Subnet struct{ Zone, ID string }

// Network creates a launch template, and returns it with the subnets of the three zones of [Region].
func (c *Cloud) Network(t testing.TB) Network {
	t.Helper()
	client := ec2.NewFromConfig(c.Direct())
	template, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("worker"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId: aws.String("ami-12c6146b"), InstanceType: types.InstanceTypeT3Small,
		},
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

// Queue creates an SQS queue with a visibility timeout, and returns its URL.
func (c *Cloud) Queue(t testing.TB, name string, visibility time.Duration) string {
	t.Helper()
	queue, err := sqs.NewFromConfig(c.Direct()).CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName:  aws.String(name),
		Attributes: map[string]string{"VisibilityTimeout": fmt.Sprint(int(visibility.Seconds()))},
	})
	if err != nil {
		t.Fatal(err)
	}
	// moto returns its own address.
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

// SpotInterruption returns EventBridge's event of an interruption warning, two minutes before the
// interruption.
func (c *Cloud) SpotInterruption(instance string, at time.Time) string {
	return c.event(
		"EC2 Spot Instance Interruption Warning", instance, at, map[string]string{"instance-action": "terminate"},
	)
}

// RebalanceRecommendation returns EventBridge's event of a rebalance recommendation.
func (c *Cloud) RebalanceRecommendation(instance string, at time.Time) string {
	return c.event("EC2 Instance Rebalance Recommendation", instance, at, nil)
}

// StateChange returns EventBridge's event of a new state, such as shutting-down.
func (c *Cloud) StateChange(instance, state string, at time.Time) string {
	return c.event("EC2 Instance State-change Notification", instance, at, map[string]string{"state": state})
}

// event returns an EC2 event in EventBridge's format, which has whole seconds.
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

// TakeBack terminates an instance, like EC2 after an interruption warning.
func (c *Cloud) TakeBack(t testing.TB, instance string) {
	t.Helper()
	client := ec2.NewFromConfig(c.Direct())
	_, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		t.Fatal(err)
	}
}

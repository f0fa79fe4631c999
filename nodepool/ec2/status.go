package ec2

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

const (
	// statusFor is how long what EC2 says of the hardware is taken to stay the same, and how long a failed call is not repeated. AWS announces
	// maintenance days ahead.
	statusFor = time.Minute
	// statusTimeout is short, as the list of instances waits for the answers.
	statusTimeout = 5 * time.Second
	// impairedFor is how long a status check must have failed. EC2 checks every minute.
	impairedFor = 10 * time.Minute
)

// statusFilters are the instances that are asked about, one call each: of an account there are few. EC2 has no filter by tag here.
var statusFilters = []types.Filter{
	{Name: aws.String("event.code"), Values: []string{"instance-retirement", "instance-stop", "instance-reboot", "system-reboot", "system-maintenance"}},
	{Name: aws.String("system-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
	{Name: aws.String("instance-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
}

// hardware is what EC2 said last of scheduled events and status checks.
type hardware struct {
	at  time.Time                       // of the calls; zero: none was made
	of  map[string]types.InstanceStatus // by instance, those with any
	err error
}

// inspect has instances replaced that AWS will stop or restart, or whose status checks fail. Their Nodes may be Ready for as long.
func (p *Provider) inspect(ctx context.Context, instances []fleet.Instance) {
	if len(instances) == 0 {
		return
	}
	now := p.options.Now()
	p.mu.Lock()
	seen := p.hardware
	p.mu.Unlock()
	if seen.at.IsZero() || now.Sub(seen.at) >= statusFor {
		seen = hardware{at: now}
		seen.of, seen.err = p.statuses(ctx)
		p.mu.Lock()
		p.hardware = seen
		p.mu.Unlock()
	}
	for n := range instances {
		i := &instances[n]
		if i.Outdated != "" {
			continue
		}
		i.Outdated = failing(seen.of[i.ID], now)
		if seen.err != nil && i.OutdatedErr == "" {
			i.OutdatedErr = seen.err.Error()
		}
	}
}

// statuses asks EC2 for scheduled events and failed status checks.
func (p *Provider) statuses(ctx context.Context) (map[string]types.InstanceStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	out := map[string]types.InstanceStatus{}
	for _, filter := range statusFilters {
		pages := ec2.NewDescribeInstanceStatusPaginator(p.client, &ec2.DescribeInstanceStatusInput{
			Filters: []types.Filter{filter}, MaxResults: aws.Int32(p.pageSize),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, classify("DescribeInstanceStatus", err)
			}
			for _, s := range page.InstanceStatuses {
				out[aws.ToString(s.InstanceId)] = s
			}
		}
	}
	return out, nil
}

// failing returns why the hardware under an instance is to be left, "" if it need not be: a part of a sentence.
func failing(s types.InstanceStatus, now time.Time) string {
	for _, e := range s.Events {
		switch text := aws.ToString(e.Description); {
		case strings.HasPrefix(text, "[Completed]"), strings.HasPrefix(text, "[Canceled]"):
		case e.NotBefore == nil:
			return fmt.Sprintf("AWS has scheduled %s of it", e.Code)
		default:
			return fmt.Sprintf("AWS has scheduled %s of it for %s", e.Code, e.NotBefore.UTC().Format(time.RFC3339))
		}
	}
	for _, check := range []struct {
		name    string
		summary *types.InstanceStatusSummary
	}{{"system", s.SystemStatus}, {"instance", s.InstanceStatus}} {
		if check.summary == nil {
			continue
		}
		for _, d := range check.summary.Details {
			if since := d.ImpairedSince; since != nil && now.Sub(*since) >= impairedFor {
				return fmt.Sprintf("its EC2 %s status check has failed since %s", check.name, since.UTC().Format(time.RFC3339))
			}
		}
	}
	return ""
}

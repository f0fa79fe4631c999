package ec2

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/foresail/foresail/nodepool/fleet"
)

const (
	// statusFor is how long the state of the hardware, or the error of a failed call, is cached. AWS announces maintenance
	// days ahead.
	statusFor = time.Minute
	// statusTimeout is short, as the list of instances waits for the answers.
	statusTimeout = 5 * time.Second
	// impairedFor is how long a status check must have failed. EC2 runs it every minute.
	impairedFor = 10 * time.Minute
)

// statusFilters select the instances to read, one call each. These calls have no filter by tag: they return the few
// such instances of the whole account.
var statusFilters = []types.Filter{
	{Name: aws.String("event.code"), Values: []string{
		"instance-retirement", "instance-stop", "instance-reboot", "system-reboot", "system-maintenance",
	}},
	{Name: aws.String("system-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
	{Name: aws.String("instance-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
}

// hardware marks instances whose hardware fails or will be maintained. Its methods may be called from any goroutine.
type hardware struct {
	client *client
	now    func() time.Time

	mu   sync.Mutex
	last statuses
}

// statuses is the last answer of EC2 about scheduled events and status checks.
type statuses struct {
	at  time.Time                       // of the calls; zero: none was made
	of  map[string]types.InstanceStatus // by instance, those with any
	err error
}

// markOutdated sets Outdated of instances that AWS will stop or restart, or whose status checks fail. Their Nodes may
// be Ready until then.
func (h *hardware) markOutdated(ctx context.Context, list []fleet.Instance) {
	if len(list) == 0 {
		return
	}
	now := h.now()
	h.mu.Lock()
	seen := h.last
	h.mu.Unlock()
	if seen.at.IsZero() || now.Sub(seen.at) >= statusFor {
		seen = statuses{at: now}
		seen.of, seen.err = h.read(ctx)
		h.mu.Lock()
		h.last = seen
		h.mu.Unlock()
	}
	for n := range list {
		i := &list[n]
		if i.Outdated != "" {
			continue
		}
		i.Outdated = failing(seen.of[i.ID], now)
		if seen.err != nil && i.OutdatedErr == "" {
			i.OutdatedErr = seen.err.Error()
		}
	}
}

// read returns the scheduled events and failed status checks, by instance.
func (h *hardware) read(ctx context.Context) (map[string]types.InstanceStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	out := map[string]types.InstanceStatus{}
	for _, filter := range statusFilters {
		pages := ec2.NewDescribeInstanceStatusPaginator(h.client, &ec2.DescribeInstanceStatusInput{
			Filters: []types.Filter{filter}, MaxResults: aws.Int32(maxPageSize),
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

// failing returns why an instance must leave its hardware, as a clause; "" if it need not.
func failing(s types.InstanceStatus, now time.Time) string {
	for _, e := range s.Events {
		switch text := aws.ToString(e.Description); {
		case strings.HasPrefix(text, "[Completed]"), strings.HasPrefix(text, "[Canceled]"):
		case e.NotBefore == nil:
			return fmt.Sprintf("AWS has scheduled its %s", e.Code)
		default:
			return fmt.Sprintf("AWS has scheduled its %s for %s", e.Code, e.NotBefore.UTC().Format(time.RFC3339))
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

package awstest

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
	"time"
)

// instanceStatus is what DescribeInstanceStatus answers of an instance, in the form of EC2.
type instanceStatus struct {
	ID       string           `xml:"instanceId"`
	Events   []scheduledEvent `xml:"eventsSet>item"`
	System   statusSummary    `xml:"systemStatus"`
	Instance statusSummary    `xml:"instanceStatus"`
}

type scheduledEvent struct {
	Code        string `xml:"code"`
	Description string `xml:"description"`
	NotBefore   string `xml:"notBefore"`
}

type statusSummary struct {
	Status  string        `xml:"status"`
	Details []statusCheck `xml:"details>item"`
}

type statusCheck struct {
	Name          string `xml:"name"`
	Status        string `xml:"status"`
	ImpairedSince string `xml:"impairedSince,omitempty"`
}

// Schedule has EC2 announce an event of an instance, such as instance-retirement. A description may begin with [Completed] or [Canceled].
// moto has no such events.
func (c *Cloud) Schedule(instance, code, description string, at time.Time) {
	c.status(instance, func(s *instanceStatus) {
		s.Events = append(s.Events, scheduledEvent{code, description, at.UTC().Format(time.RFC3339)})
	})
}

// Impair has the system status check of an instance fail since a moment.
func (c *Cloud) Impair(instance string, since time.Time) {
	c.status(instance, func(s *instanceStatus) {
		s.System = statusSummary{"impaired", []statusCheck{{"reachability", "failed", since.UTC().Format(time.RFC3339)}}}
	})
}

func (c *Cloud) status(instance string, change func(*instanceStatus)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.ec2.statuses
	at := slices.IndexFunc(all, func(s instanceStatus) bool { return s.ID == instance })
	if at < 0 {
		ok := statusSummary{"ok", []statusCheck{{Name: "reachability", Status: "passed"}}}
		all, at = append(all, instanceStatus{ID: instance, System: ok, Instance: ok}), len(all)
	}
	change(&all[at])
	c.ec2.statuses = all
}

// describeStatus answers DescribeInstanceStatus with a filter, one instance a page.
func (c *Cloud) describeStatus(call *Call) *answer {
	fits := map[string]func(instanceStatus, []string) bool{
		"event.code": func(s instanceStatus, codes []string) bool {
			return slices.ContainsFunc(s.Events, func(e scheduledEvent) bool { return slices.Contains(codes, e.Code) })
		},
		"system-status.status":   func(s instanceStatus, wanted []string) bool { return slices.Contains(wanted, s.System.Status) },
		"instance-status.status": func(s instanceStatus, wanted []string) bool { return slices.Contains(wanted, s.Instance.Status) },
	}[call.Params.Get("Filter.1.Name")]
	if fits == nil {
		return failure(call, http.StatusBadRequest, "InvalidParameterValue", "only filters by events and status checks are known")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []instanceStatus
	for _, s := range c.ec2.statuses {
		if fits(s, values(call.Params, "Filter.1.Value")) {
			found = append(found, s)
		}
	}
	reply := struct {
		XMLName xml.Name         `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeInstanceStatusResponse"`
		Items   []instanceStatus `xml:"instanceStatusSet>item"`
		Next    string           `xml:"nextToken,omitempty"`
	}{}
	page := len(call.Params.Get("NextToken"))
	if page < len(found) {
		reply.Items = found[page : page+1]
		if page+1 < len(found) {
			reply.Next = strings.Repeat("p", page+1)
		}
	}
	data, err := xml.Marshal(reply)
	if err != nil {
		panic(err) // of strings
	}
	return &answer{http.StatusOK, "text/xml", data}
}

package awstest

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// instanceStatus is an item of the answer to DescribeInstanceStatus.
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

// statuses has the scheduled events and status checks of instances, which moto does not support.
type statuses struct {
	mu   sync.Mutex
	list []instanceStatus
}

// Schedule announces an event of an instance, such as instance-retirement. The description may
// begin with [Completed] or [Canceled].
func (s *statuses) Schedule(instance, code, description string, at time.Time) {
	s.change(instance, func(s *instanceStatus) {
		s.Events = append(s.Events, scheduledEvent{code, description, at.UTC().Format(time.RFC3339)})
	})
}

// Impair makes the system status check of an instance fail since a time.
func (s *statuses) Impair(instance string, since time.Time) {
	s.change(instance, func(s *instanceStatus) {
		s.System = statusSummary{"impaired",
			[]statusCheck{{"reachability", "failed", since.UTC().Format(time.RFC3339)}}}
	})
}

func (s *statuses) change(instance string, change func(*instanceStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.list
	at := slices.IndexFunc(all, func(s instanceStatus) bool { return s.ID == instance })
	if at < 0 {
		ok := statusSummary{"ok", []statusCheck{{Name: "reachability", Status: "passed"}}}
		all, at = append(all, instanceStatus{ID: instance, System: ok, Instance: ok}), len(all)
	}
	change(&all[at])
	s.list = all
}

// describe answers DescribeInstanceStatus with one filter, in pages of one instance.
func (s *statuses) describe(call *Call) *answer {
	fits := map[string]func(instanceStatus, []string) bool{
		"event.code": func(s instanceStatus, codes []string) bool {
			return slices.ContainsFunc(s.Events, func(e scheduledEvent) bool { return slices.Contains(codes, e.Code) })
		},
		"system-status.status": func(s instanceStatus, values []string) bool {
			return slices.Contains(values, s.System.Status)
		},
		"instance-status.status": func(s instanceStatus, values []string) bool {
			return slices.Contains(values, s.Instance.Status)
		},
	}[call.Params.Get("Filter.1.Name")]
	if fits == nil {
		return failure(call, http.StatusBadRequest, "InvalidParameterValue",
			"only filters by events and status checks are supported")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []instanceStatus
	for _, one := range s.list {
		if fits(one, values(call.Params, "Filter.1.Value")) {
			found = append(found, one)
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

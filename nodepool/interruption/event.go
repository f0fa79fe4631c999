package interruption

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/provider"
)

const (
	// noticeTime is the time between the warning and the interruption of a Spot instance.
	noticeTime = 2 * time.Minute
	// lateAfter is how long past its deadline a warning is still passed on: the clock may be ahead of EC2's, but not by
	// that much.
	lateAfter = 15 * time.Minute
)

// EventBridge's names of the events that are passed on.
const (
	spotWarning = "EC2 Spot Instance Interruption Warning"
	rebalance   = "EC2 Instance Rebalance Recommendation"
	stateChange = "EC2 Instance State-change Notification"
)

// event has the fields of an EventBridge event that are read.
type event struct {
	Kind   string    `json:"detail-type"`
	Source string    `json:"source"`
	Time   time.Time `json:"time"`
	Detail struct {
		InstanceID string `json:"instance-id"`
		State      string `json:"state"` // of a state change
	} `json:"detail"`
}

// verdict is the result of reading a message.
type verdict int

const (
	relevant  verdict = iota // for the pool
	ignored                  // of a kind or state that does not concern a pool
	late                     // its instance ended long ago
	malformed                // no event
)

// read returns the message for a pool in the body of an SQS message. The deadline is relative to the time of the
// event, or to now if it has none.
func read(body string, now time.Time) (provider.Message, verdict, error) {
	var e event
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return provider.Message{}, malformed, err
	}
	if e.Kind == "" {
		return provider.Message{}, malformed, fmt.Errorf("has no detail-type")
	}
	m := provider.Message{InstanceID: e.Detail.InstanceID}
	switch {
	case e.Source != "aws.ec2":
		return m, ignored, nil
	case e.Kind == spotWarning:
		m.Kind = provider.MessageInterruption
		if e.Time.IsZero() {
			e.Time = now
		}
		m.Deadline = e.Time.Add(noticeTime)
	case e.Kind == rebalance:
		m.Kind = provider.MessageRebalance
	case e.Kind == stateChange && leaving(e.Detail.State):
		m.Kind = provider.MessageStateChange
	default:
		return m, ignored, nil
	}
	if m.InstanceID == "" {
		return m, malformed, fmt.Errorf("%s: has no detail.instance-id", e.Kind)
	}
	if !m.Deadline.IsZero() && now.Sub(m.Deadline) > lateAfter {
		return m, late, nil
	}
	return m, relevant, nil
}

// leaving reports whether an instance in a state no longer runs pods.
func leaving(state string) bool {
	switch state {
	case "stopping", "stopped", "shutting-down", "terminated":
		return true
	default:
		return false
	}
}

package interruption

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/foresail/foresail/nodepool/provider"
)

const (
	// noticeTime is how long EC2 leaves a Spot instance after its warning.
	noticeTime = 2 * time.Minute
	// lateAfter is how long after its deadline a warning is still told: the clock may be ahead of EC2's, but not by so much.
	lateAfter = 15 * time.Minute
)

// The events that are told, as EventBridge names them.
const (
	spotWarning = "EC2 Spot Instance Interruption Warning"
	rebalance   = "EC2 Instance Rebalance Recommendation"
	stateChange = "EC2 Instance State-change Notification"
)

// event is one of EventBridge's, as far as it matters here.
type event struct {
	Kind   string    `json:"detail-type"`
	Source string    `json:"source"`
	Time   time.Time `json:"time"`
	Detail struct {
		InstanceID string `json:"instance-id"`
		State      string `json:"state"` // of a state change
	} `json:"detail"`
}

// verdict says what becomes of a message.
type verdict int

const (
	told    verdict = iota
	ignored         // of a kind, or of a state, that says nothing to a pool
	late            // its instance is long gone
	garbage         // no event
)

// read makes of the body of a message what a pool is told. The deadline is counted from the time of the event, or from
// now if it has none.
func read(body string, now time.Time) (provider.Message, verdict, error) {
	var e event
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return provider.Message{}, garbage, err
	}
	if e.Kind == "" {
		return provider.Message{}, garbage, fmt.Errorf("has no detail-type")
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
		return m, garbage, fmt.Errorf("%s: has no detail.instance-id", e.Kind)
	}
	if !m.Deadline.IsZero() && now.Sub(m.Deadline) > lateAfter {
		return m, late, nil
	}
	return m, told, nil
}

// leaving tells the states that take a worker away.
func leaving(state string) bool {
	switch state {
	case "stopping", "stopped", "shutting-down", "terminated":
		return true
	default:
		return false
	}
}

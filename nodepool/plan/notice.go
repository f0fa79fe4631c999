package plan

import "time"

// Notice says that the cloud takes an instance back, or that it is removed because its Node is
// unhealthy.
type Notice struct {
	InstanceID string
	Deadline   time.Time
	Unhealthy  bool // its Node is unhealthy, and the pool removes it
}

// Message is a report of the cloud about an instance that was not asked for.
type Message struct {
	InstanceID   string
	Interruption bool // the cloud takes it back; otherwise it advises to leave it
	Deadline     time.Time
}

package explain

import (
	"time"
)

// View is an Explanation as texts, for Table and for the page of `foresail dashboard`.
type View struct {
	At         time.Time `json:"time"`
	Name       string    `json:"name"`
	Age        string    `json:"age"`
	Generation int64     `json:"generation"`

	Spec    []Fact       `json:"spec"`
	Now     []Fact       `json:"now"`
	Signals []SignalView `json:"signals"`
	Action  *ActionView  `json:"action"` // nil: none is open
	Held    []Fact       `json:"held"`   // what holds decisions back, or happens outside of the action

	Decisions       []DecisionView       `json:"decisions"`       // the newest first
	Recommendations []RecommendationView `json:"recommendations"` // of the newest decision

	Nodes         []NodeView `json:"nodes"`         // by name
	NodesError    string     `json:"nodesError"`    // why there are none
	Unschedulable *int       `json:"unschedulable"` // pods of the whole cluster
	Pods          []PodView  `json:"pods"`          // those that have waited longest
}

// Fact is a named text.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// SignalView is a signal with its numbers, or why it has none.
type SignalView struct {
	Name        string `json:"name"`
	Error       string `json:"error,omitempty"`
	Current     string `json:"current"`
	Predicted   string `json:"predicted"`
	Horizon     string `json:"horizon"`
	Threshold   string `json:"threshold"`
	Recommended string `json:"recommended"`
}

// ActionView is the open action. It has steps if its journal is known, else its progress.
type ActionView struct {
	Title    string     `json:"title"`
	Removes  string     `json:"removes,omitempty"`
	Progress string     `json:"progress,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Steps    []StepView `json:"steps,omitempty"`
}

// StepView is the state of one node of an action.
type StepView struct {
	Of        string `json:"of"`    // number of a new node, or name of a removed one
	State     string `json:"state"` // with its age
	Placement string `json:"placement"`
	Instance  string `json:"instance"` // Node or instance id of a new node
	Error     string `json:"error"`
}

// DecisionView is a decision, or several equal ones in a row.
type DecisionView struct {
	When            string `json:"when"`
	Step            string `json:"step"`
	Reason          string `json:"reason"`
	Change          string `json:"change"`
	Message         string `json:"message"`
	Recommendations string `json:"recommendations"`
}

// RecommendationView is the recommendation of one signal.
type RecommendationView struct {
	Signal  string `json:"signal"`
	Workers string `json:"workers"`
	Reason  string `json:"reason"`
}

// NodeView is a node of the pool.
type NodeView struct {
	Node
	Age string `json:"age"`
}

// PodView is an unschedulable pod.
type PodView struct {
	Name   string `json:"name"`
	Age    string `json:"age"` // of its wait
	Reason string `json:"reason"`
}

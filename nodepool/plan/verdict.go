package plan

// verdict is the outcome of a rule.
type verdict int

const (
	passes  verdict = iota // the rule has nothing to decide: the next one is evaluated
	yields                 // this is the decision, unless a later rule acts
	decides                // this is the decision
)

package plan

// verdict says what becomes of the decision that a rule returns.
type verdict int

const (
	passes  verdict = iota // the rule has nothing to decide: the next one is asked
	yields                 // this is the decision, unless a later rule acts
	decides                // this is the decision
)

package source

// NotYet wraps an error that may pass by itself while a target is new: a pod that does not listen
// yet, or a query that has no result yet.
type NotYet struct{ Err error }

func (e NotYet) Error() string { return e.Err.Error() }

func (e NotYet) Unwrap() error { return e.Err }

package prometheus

import (
	"errors"
	"fmt"
	"time"

	"github.com/foresail/foresail/internal/promapi"
)

// failure is why a query brought no answer that can be used.
type failure struct {
	as  result
	err error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(as result, format string, a ...any) *failure {
	return &failure{as: as, err: fmt.Errorf(format, a...)}
}

// explain says in the terms of a PredictedMetric why a query failed.
func explain(err error, key *groupKey, timeout time.Duration) *failure {
	if kind, ok := errors.AsType[*typeError](err); ok {
		return fail(resultQuery, "%s: query %.200q: %w; %s", key.address, key.query, kind, key.acceptedQuery())
	}
	question := promapi.Question{Address: key.address, Query: key.query, Accepted: key.acceptedQuery(), Timeout: timeout}
	why := question.Explain(err)
	return &failure{as: result(why.Kind), err: why}
}

func (k *groupKey) acceptedQuery() string {
	return fmt.Sprintf("must be a plain selector such as %s (for the rate of a counter, with type Counter; for an expression, that of a recording rule whose series have the label %s)",
		exampleSelector, k.podLabel)
}

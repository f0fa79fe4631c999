package signal

import (
	"cmp"
	"errors"
	"time"

	"github.com/foresail/foresail/internal/nodequery"
)

// newQuestion returns a query to the server that q or the options name.
func newQuestion(o *Options, q *Query, step, timeout time.Duration) (nodequery.Question, error) {
	address := cmp.Or(q.Address, o.DefaultAddress)
	if o.Servers == nil || address == "" {
		return nodequery.Question{}, errors.New(
			`address: "": must be given, as Foresail was started without a Prometheus server`)
	}
	api, err := o.Servers.API(address)
	if err != nil {
		return nodequery.Question{}, err
	}
	return nodequery.New(api, address, q.Expr, step, timeout), nil
}

package remotewrite

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/foresail/foresail/adapter/source/remotewrite/decode"
)

// retryAfter is the pause that senders are asked to make before they try again, in seconds.
const retryAfter = "1"

// rejection is an answer that is not a success.
type rejection struct {
	code   int
	reason string
}

// Error implements error.
func (r *rejection) Error() string { return r.reason }

// errBusy makes senders try again.
var errBusy = &rejection{code: http.StatusServiceUnavailable, reason: "too much is being received at once"}

func tooLarge(what string, limit int64) error {
	return &rejection{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes %s", limit, what)}
}

// rejectionOf returns the rejection of a request that cannot be decoded.
func rejectionOf(err error) error {
	why, ok := errors.AsType[*decode.Error](err)
	switch {
	case !ok:
		return err
	case why.TooLarge:
		return &rejection{http.StatusRequestEntityTooLarge, why.Reason}
	}
	return &rejection{http.StatusBadRequest, why.Reason}
}

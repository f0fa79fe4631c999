package awstest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/aws/smithy-go/encoding/cbor"
)

// Fault is a failure of calls.
type Fault struct {
	// Service and Operation select calls; empty is any.
	Service, Operation string
	// When selects among them; nil is all.
	When func(Call) bool
	// Times is the number of affected calls; 0 = all until the fault is removed.
	Times int
	// After has the service carry the call out before the failure.
	After bool
	// Do is the effect.
	Do Effect
	// Status and Code are the answer of [Fail]; 0 and "" are 500 and InternalError (or the
	// service's equivalent).
	Status int
	Code   string
}

// Effect is the effect of a fault.
type Effect int

// The effects.
const (
	Fail     Effect = iota // the answer is an error
	Throttle               // the answer is the service's throttling error
	Drop                   // the connection breaks without an answer
	Hang                   // there is no answer until the client gives up
)

type faultState struct {
	Fault
	left int
}

// faults injects failures.
type faults struct {
	mu   sync.Mutex
	list []*faultState
}

// Inject makes calls fail from now on, until the fault has affected its number of calls or is
// removed. The oldest matching fault affects a call.
func (f *faults) Inject(fault Fault) (remove func()) {
	state := &faultState{Fault: fault, left: fault.Times}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, state)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.list = slices.DeleteFunc(f.list, func(s *faultState) bool { return s == state })
	}
}

// match returns the fault of a call; nil = none.
func (f *faults) match(call Call) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, s := range f.list {
		if s.Service != "" && s.Service != call.Service || s.Operation != "" && s.Operation != call.Operation ||
			s.When != nil && !s.When(call) {
			continue
		}
		if s.Times > 0 {
			s.left--
			if s.left == 0 {
				f.list = slices.Delete(f.list, i, i+1)
			}
		}
		return &s.Fault
	}
	return nil
}

// answer returns the answer to the client; nil = none.
func (f *Fault) answer(r *http.Request, call *Call) *answer {
	switch f.Do {
	case Drop:
		return nil
	case Hang:
		<-r.Context().Done()
		return nil
	case Throttle:
		return throttled(call)
	default:
		return failure(call, cmp.Or(f.Status, http.StatusInternalServerError), f.Code, "the call was made to fail")
	}
}

// throttled returns the throttling error of each service.
func throttled(call *Call) *answer {
	const message = "too many calls"
	switch call.Service {
	case EC2:
		return failure(call, http.StatusServiceUnavailable, "RequestLimitExceeded", message)
	case SQS:
		return failure(call, http.StatusForbidden, "RequestThrottled", message)
	default:
		return failure(call, http.StatusBadRequest, "ThrottlingException", message)
	}
}

const (
	xmlType  = "text/xml"
	jsonType = "application/x-amz-json-1.0"
	cborType = "application/cbor"
)

// failure returns an error in the format of the call's service.
func failure(call *Call, status int, code, message string) *answer {
	switch call.Service {
	case EC2:
		if code == "" {
			code = "InternalError"
		}
		return &answer{status, xmlType, fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>`+
			"<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors>"+
			"<RequestID>made-up</RequestID></Response>", code, message)}
	case CloudWatch:
		if code == "" {
			code = "InternalServiceFault"
		}
		return &answer{status, cborType, cbor.Encode(cbor.Map{
			"__type": cbor.String("com.amazonaws.cloudwatch#" + code), "message": cbor.String(message),
		})}
	default:
		if code == "" {
			code = "InternalServerError"
		}
		body, err := json.Marshal(map[string]string{
			"__type": "com.amazonaws." + call.Service + "#" + code, "message": message,
		})
		if err != nil {
			panic(err) // of two strings
		}
		return &answer{status, jsonType, body}
	}
}

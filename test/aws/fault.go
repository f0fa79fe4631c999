package awstest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"
)

// Fault is what goes wrong with calls.
type Fault struct {
	// Service and Operation choose calls; empty is any.
	Service, Operation string
	// When chooses among them; nil is all.
	When func(Call) bool
	// Times is how many calls it meets before it is over; 0 is all until it is removed.
	Times int
	// After lets the service do what it is asked before it goes wrong.
	After bool
	// Do says what goes wrong.
	Do Effect
	// Status and Code are what [Fail] answers; 0 and "" are 500 and InternalError (as each service calls it).
	Status int
	Code   string
}

// Effect is a way to go wrong.
type Effect int

// The effects.
const (
	Fail     Effect = iota // an error is answered
	Throttle               // too many calls, as each service says so
	Drop                   // the connection breaks without an answer
	Hang                   // nothing is answered until the client gives up
)

type faultState struct {
	Fault
	left int
}

// Inject has calls go wrong from now on, as long as the fault lasts or until it is removed. Of several faults that a call
// would meet it meets the oldest.
func (c *Cloud) Inject(f Fault) (remove func()) {
	state := &faultState{Fault: f, left: f.Times}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, state)
	return func() { c.drop(state) }
}

func (c *Cloud) drop(state *faultState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = slices.DeleteFunc(c.faults, func(s *faultState) bool { return s == state })
}

// fault returns what a call meets; nil is nothing.
func (c *Cloud) fault(call Call) *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.faults {
		if s.Service != "" && s.Service != call.Service || s.Operation != "" && s.Operation != call.Operation ||
			s.When != nil && !s.When(call) {
			continue
		}
		if s.Times > 0 {
			s.left--
			if s.left == 0 {
				c.faults = slices.Delete(c.faults, i, i+1)
			}
		}
		return &s.Fault
	}
	return nil
}

// serve answers a call of a client.
func (c *Cloud) serve(w http.ResponseWriter, r *http.Request) {
	body, err := readAll(r)
	if err != nil {
		return // the client is gone
	}
	call := parse(r, body)
	c.mu.Lock()
	c.calls = append(c.calls, call)
	seen := *call
	c.mu.Unlock()

	fault := c.fault(seen)
	var reply *answer
	done := fault == nil || fault.After
	if done {
		reply = c.answer(r, &seen)
	}
	if fault != nil {
		reply = fault.meet(r, &seen)
	}
	c.mu.Lock()
	call.Ended, call.Params, call.Done = time.Now(), seen.Params, done
	if reply != nil {
		call.Status = reply.status
	}
	c.mu.Unlock()
	if reply == nil {
		panic(http.ErrAbortHandler) // breaks the connection
	}
	reply.writeTo(w)
}

// meet returns what the client is told; nil is nothing.
func (f *Fault) meet(r *http.Request, call *Call) *answer {
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

// throttled is how each service says that there are too many calls.
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

// failure is an error in the form of the call's service.
func failure(call *Call, status int, code, message string) *answer {
	switch call.Service {
	case EC2:
		if code == "" {
			code = "InternalError"
		}
		return &answer{status, xmlType, fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>`+
			"<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>made-up</RequestID></Response>",
			code, message)}
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
		body, err := json.Marshal(map[string]string{"__type": "com.amazonaws." + call.Service + "#" + code, "message": message})
		if err != nil {
			panic(err) // of two strings
		}
		return &answer{status, jsonType, body}
	}
}

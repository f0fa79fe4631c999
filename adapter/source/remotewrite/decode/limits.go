package decode

import (
	"errors"
	"fmt"
)

// Limits bound the content of one request.
type Limits struct {
	DecodedBytes    int64 // of the labels, written out for each series
	Series          int   // each data point of OTLP is one
	Samples         int
	Labels          int // of a series that is taken
	LabelNameBytes  int
	LabelValueBytes int
}

// Error is why a request is rejected as a whole.
type Error struct {
	TooLarge bool // it exceeds a limit; otherwise it is malformed
	Reason   string
}

// Error implements error.
func (e *Error) Error() string { return e.Reason }

// Malformed returns the Error for a body that is not the message that its sender announced.
func Malformed(err error) *Error {
	return &Error{Reason: fmt.Sprintf("the body is not the message that the Content-Type names: %v", err)}
}

func tooMany(what string, limit int) *Error {
	return &Error{TooLarge: true, Reason: fmt.Sprintf("more than %d %s in one request", limit, what)}
}

var (
	errWireType = errors.New("a field has the wrong wire type")
	// errOtherVersion is for fields of the other protocol version. Skipping them would lose samples unseen.
	errOtherVersion = errors.New("it has fields of another version of the protocol")
)

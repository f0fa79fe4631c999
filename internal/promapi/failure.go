package promapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// Kind classifies why a query failed.
type Kind string

// The kinds.
const (
	Connection Kind = "connection" // refused, reset, unreachable, TLS
	Timeout    Kind = "timeout"
	Refused    Kind = "query"   // the server refuses the query
	Status     Kind = "status"  // another HTTP status than 200
	Content    Kind = "content" // not what Prometheus answers
	Limit      Kind = "limit"   // too many series or bytes
)

// Failure is why a query brought no answer that can be used.
type Failure struct {
	Kind Kind
	err  error
}

func (f *Failure) Error() string { return f.err.Error() }

func (f *Failure) Unwrap() error { return f.err }

// Fail returns a Failure with a text that is formatted like that of fmt.Errorf.
func Fail(kind Kind, format string, a ...any) *Failure {
	return &Failure{Kind: kind, err: fmt.Errorf(format, a...)}
}

// Question is what was asked.
type Question struct {
	Address, Query string
	Accepted       string // what would be, if the server refuses the query: "must be …"
	Timeout        time.Duration
}

// Explain says in the terms of those who wrote the query why it failed. What a server that is not Prometheus has
// answered is not repeated: anyone who may write a query could read internal pages so.
func (q *Question) Explain(err error) *Failure {
	var size *sizeError
	var redirect *redirectError
	var answer *v1.Error
	var transport *url.Error
	switch {
	case errors.As(err, &size):
		return Fail(Limit, "%s: %w", q.Address, size)
	case errors.As(err, &redirect):
		return Fail(Status, "%s: %w", q.Address, redirect)
	case errors.Is(err, context.DeadlineExceeded):
		return Fail(Timeout, "%s: no whole answer within %v", q.Address, q.Timeout)
	case errors.As(err, &answer):
		return q.explainAnswer(answer)
	case errors.As(err, &transport):
		return Fail(Connection, "%s: %w", q.Address, transport.Err)
	default: // the body breaks off, or is no answer of Prometheus
		return Fail(Content, "%s: what it answers is not whole, or not what Prometheus answers", q.Address)
	}
}

func (q *Question) explainAnswer(answer *v1.Error) *Failure {
	switch answer.Type {
	case v1.ErrBadData:
		return Fail(Refused, "%s: query %.200q is refused: %s; %s", q.Address, q.Query, Short(answer.Msg), q.Accepted)
	case v1.ErrClient, v1.ErrServer:
		var own struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal([]byte(answer.Detail), &own)
		text := statusText(answer.Msg)
		if own.Error != "" {
			text += ": " + Short(own.Error)
		}
		return Fail(Status, "%s: %s", q.Address, text)
	case v1.ErrBadResponse, "":
		return Fail(Content, "%s: what it answers is not whole, or not what Prometheus answers", q.Address)
	default: // an error of the query's execution, in Prometheus' own words
		return Fail(Status, "%s: %s: %s", q.Address, Short(string(answer.Type)), Short(answer.Msg))
	}
}

// statusText names an HTTP status that the client library mentions by its number.
func statusText(message string) string {
	var code int
	if i := strings.LastIndexByte(message, ' '); i >= 0 {
		_, _ = fmt.Sscan(message[i:], &code)
	}
	if name := http.StatusText(code); name != "" {
		return fmt.Sprintf("HTTP status %d %s", code, name)
	}
	return Short(message)
}

package prometheus

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

// explain says in the terms of a PredictedMetric why a query failed. What a server that is not Prometheus has answered
// is not repeated: anyone who may write a PredictedMetric could read internal pages so.
func explain(err error, key *groupKey, timeout time.Duration) *failure {
	var size *sizeError
	var redirect *redirectError
	var kind *typeError
	var answer *v1.Error
	var transport *url.Error
	switch {
	case errors.As(err, &size):
		return fail(resultLimit, "%s: %w", key.address, size)
	case errors.As(err, &redirect):
		return fail(resultStatus, "%s: %w", key.address, redirect)
	case errors.As(err, &kind):
		return fail(resultQuery, "%s: query %.200q: %w; %s", key.address, key.query, kind, key.acceptedQuery())
	case errors.Is(err, context.DeadlineExceeded):
		return fail(resultTimeout, "%s: no whole answer within %v", key.address, timeout)
	case errors.As(err, &answer):
		return explainAnswer(answer, key)
	case errors.As(err, &transport):
		return fail(resultConnection, "%s: %w", key.address, transport.Err)
	default: // the body breaks off, or is no matrix
		return fail(resultContent, "%s: what it answers is not whole, or not what Prometheus answers", key.address)
	}
}

func explainAnswer(answer *v1.Error, key *groupKey) *failure {
	switch answer.Type {
	case v1.ErrBadData:
		return fail(resultQuery, "%s: query %.200q is refused: %s; %s", key.address, key.query, short(answer.Msg), key.acceptedQuery())
	case v1.ErrClient, v1.ErrServer:
		var own struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal([]byte(answer.Detail), &own)
		text := statusText(answer.Msg)
		if own.Error != "" {
			text += ": " + short(own.Error)
		}
		return fail(resultStatus, "%s: %s", key.address, text)
	case v1.ErrBadResponse, "":
		return fail(resultContent, "%s: what it answers is not whole, or not what Prometheus answers", key.address)
	default: // an error of the query's execution, in Prometheus' own words
		return fail(resultStatus, "%s: %s: %s", key.address, short(string(answer.Type)), short(answer.Msg))
	}
}

func (k *groupKey) acceptedQuery() string {
	return fmt.Sprintf("must be a plain selector such as %s (for the rate of a counter, with type Counter; for an expression, that of a recording rule whose series have the label %s)",
		exampleSelector, k.podLabel)
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
	return short(message)
}

// maxText is how much of a server's message is passed on.
const maxText = 300

// short shortens a server's message and makes it one printable line.
func short(text string) string {
	text = text[:min(len(text), 16*maxText)] // there may be megabytes of it
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	return text
}

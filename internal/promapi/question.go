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
	"github.com/prometheus/common/model"
)

// Question is a query to the server at an address.
type Question struct {
	Address, Query string
	Accepted       string        // which queries are accepted: "must be …", for errors
	Timeout        time.Duration // of a request, rounded up to whole seconds for the server
	MaxSeries      int           // that an answer may have; 0 = any number
	Tenant         string        // whose share of the memory the answer takes
}

// Range evaluates the query over a span, and returns the warnings of the server too. Its errors are *Failure.
func (q *Question) Range(ctx context.Context, api v1.API, span v1.Range) (model.Matrix, v1.Warnings, error) {
	return ask[model.Matrix](ctx, q, func(ctx context.Context, o ...v1.Option) (model.Value, v1.Warnings, error) {
		return api.QueryRange(ctx, q.Query, span, o...)
	})
}

// maxSteps is how many are asked for at once: Prometheus returns at most 11,000 samples of a series.
const maxSteps = 10_000

// RangeInParts evaluates the query over a span of any number of steps, and hands on the answer to
// each part of it. It ends with the first error.
func (q *Question) RangeInParts(ctx context.Context, api v1.API, span v1.Range, take func(model.Matrix) error) error {
	for begin := span.Start; !begin.After(span.End); begin = begin.Add(maxSteps * span.Step) {
		part := v1.Range{Start: begin, End: begin.Add((maxSteps - 1) * span.Step), Step: span.Step}
		if part.End.After(span.End) {
			part.End = span.End
		}
		matrix, _, err := q.Range(ctx, api, part)
		if err != nil {
			return err
		}
		if err := take(matrix); err != nil {
			return err
		}
	}
	return nil
}

// Vector evaluates the query at a time. Its errors are *Failure.
func (q *Question) Vector(ctx context.Context, api v1.API, at time.Time) (model.Vector, error) {
	vector, _, err := ask[model.Vector](ctx, q,
		func(ctx context.Context, o ...v1.Option) (model.Value, v1.Warnings, error) {
			return api.Query(ctx, q.Query, at, o...)
		})
	return vector, err
}

// Samples returns the samples, as they are stored, of the series that the query selects over a span
// that ends now by the server's clock, and the warnings of the server. Its errors are *Failure.
func (q *Question) Samples(ctx context.Context, api v1.API, span time.Duration) (model.Matrix, v1.Warnings, error) {
	return q.SamplesUntil(ctx, api, time.Time{}, span)
}

// SamplesUntil is Samples over a span that ends at a time.
func (q *Question) SamplesUntil(ctx context.Context, api v1.API, end time.Time, span time.Duration) (model.Matrix,
	v1.Warnings, error) {
	// The range is on a line of its own, so that a comment at the end of the selector cannot hide it.
	query := fmt.Sprintf("%s\n[%ds]", q.Query, wholeSeconds(span)/time.Second)
	return ask[model.Matrix](ctx, q, func(ctx context.Context, o ...v1.Option) (model.Value, v1.Warnings, error) {
		return api.Query(ctx, query, end, o...)
	})
}

// ask sends a request, and checks type and size of the answer.
func ask[T interface {
	model.Value
	model.Matrix | model.Vector
}](ctx context.Context, q *Question, send func(context.Context, ...v1.Option) (model.Value, v1.Warnings, error)) (T, v1.Warnings, error) {
	asking := &asking{tenant: q.Tenant}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, askingKey{}, asking), q.Timeout)
	defer cancel()
	defer asking.end()                                              // the answer has been decoded
	options := []v1.Option{v1.WithTimeout(wholeSeconds(q.Timeout))} // or the server would go on after the timeout
	if q.MaxSeries > 0 {
		options = append(options, v1.WithLimit(uint64(q.MaxSeries)+1)) // one more shows that there are too many
	}
	value, warnings, err := send(ctx, options...)
	if err != nil {
		return nil, nil, q.Explain(err)
	}
	answer, ok := value.(T)
	if !ok {
		return nil, nil, Fail(Rejected, "%s: query %.200q: the answer is a %s; %s", q.Address, q.Query, value.Type(),
			q.Accepted)
	}
	if q.MaxSeries > 0 && len(answer) > q.MaxSeries {
		return nil, nil, Fail(Limit, "%s: query %.200q returns more than %d series; it must select less", q.Address,
			q.Query, q.MaxSeries)
	}
	return answer, warnings, nil
}

// wholeSeconds rounds up, since Prometheus accepts no fractions.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// Kind classifies why a query failed.
type Kind string

// The kinds.
const (
	Connection Kind = "connection" // refused, reset, unreachable, TLS
	Timeout    Kind = "timeout"
	Rejected   Kind = "query"   // the server rejects the query, or the query is of another type
	Status     Kind = "status"  // another HTTP status than 200
	Content    Kind = "content" // not an answer of Prometheus
	Limit      Kind = "limit"   // too many series or bytes
)

// Failure is why a query has no answer that can be used.
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

// Explain says why a query failed, to the person who wrote it. It does not repeat the answer of a
// server that is not Prometheus: anyone who may write a query could read internal pages that way.
func (q *Question) Explain(err error) *Failure {
	var size *sizeError
	var redirect *redirectError
	var local *localError
	var answer *v1.Error
	var transport *url.Error
	switch {
	case errors.As(err, &size):
		return Fail(Limit, "%s: %w", q.Address, size)
	case errors.As(err, &redirect):
		return Fail(Status, "%s: %w", q.Address, redirect)
	case errors.As(err, &local):
		return Fail(Connection, "%s: %w", q.Address, local)
	case errors.Is(err, context.DeadlineExceeded):
		return Fail(Timeout, "%s: no complete answer within %v", q.Address, q.Timeout)
	case errors.As(err, &answer):
		return q.explainAnswer(answer)
	case errors.As(err, &transport):
		return Fail(Connection, "%s: %w", q.Address, transport.Err)
	default: // the body breaks off, or is no answer of Prometheus
		return q.notPrometheus()
	}
}

func (q *Question) notPrometheus() *Failure {
	return Fail(Content, "%s: the answer is incomplete or not from Prometheus", q.Address)
}

func (q *Question) explainAnswer(answer *v1.Error) *Failure {
	switch answer.Type {
	case v1.ErrBadData:
		return Fail(Rejected, "%s: query %.200q is rejected: %s; %s", q.Address, q.Query, Short(answer.Msg), q.Accepted)
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
		return q.notPrometheus()
	default: // an error while the query was evaluated, in Prometheus' own words
		return Fail(Status, "%s: %s: %s", q.Address, Short(string(answer.Type)), Short(answer.Msg))
	}
}

// statusText names an HTTP status, which the client library mentions by its number.
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

// Shown is how many names, or warnings, a message lists.
const Shown = 3

// Some lists some of the names.
func Some(names []string) string {
	out := make([]string, 0, Shown+1)
	for _, name := range names[:min(Shown, len(names))] {
		out = append(out, fmt.Sprintf("%.100q", name))
	}
	if more := len(names) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// maxText is the maximum length of a server's message that is passed on, in characters.
const maxText = 300

// Short shortens a server's message and makes it one printable line.
func Short(text string) string {
	text = text[:min(len(text), 16*maxText)] // it may have megabytes
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	return text
}

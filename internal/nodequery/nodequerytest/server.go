// Package nodequerytest has a Prometheus server for tests of what queries nodes.
package nodequerytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Series is a series of a Server. At returns its value at a time, and whether it has one.
type Series struct {
	Labels map[string]string
	At     func(t time.Time) (float64, bool)
}

// Of returns the series of a node that has a value at any time.
func Of(node string, at func(t time.Time) float64) Series {
	return Series{Labels: map[string]string{"node": node}, At: func(t time.Time) (float64, bool) { return at(t), true }}
}

// Constant returns v at any time.
func Constant(v float64) func(time.Time) float64 { return func(time.Time) float64 { return v } }

// Since returns the series without its part before a time.
func (s Series) Since(begin time.Time) Series {
	at := s.At
	s.At = func(t time.Time) (float64, bool) { v, ok := at(t); return v, ok && !t.Before(begin) }
	return s
}

// Until returns the series without its part from a time on.
func (s Series) Until(end time.Time) Series {
	at := s.At
	s.At = func(t time.Time) (float64, bool) { v, ok := at(t); return v, ok && t.Before(end) }
	return s
}

// Query is a range query that a Server received.
type Query struct {
	Expr       string
	Start, End time.Time // UTC
	Step       time.Duration
}

// Any stands for each expression that has no answer of its own.
const Any = ""

// Server answers range queries. It is a handler and, without a network, a transport. The zero
// Server has no series.
type Server struct {
	mu      sync.Mutex
	answers map[string]answer // by expression
	queries []Query
}

type answer struct {
	series  []Series
	instead http.HandlerFunc // nil = the series
}

// Set sets the series that an expression has.
func (f *Server) Set(expr string, all ...Series) { f.set(expr, answer{series: all}) }

// Instead has a handler answer an expression, until Set.
func (f *Server) Instead(expr string, with http.HandlerFunc) { f.set(expr, answer{instead: with}) }

func (f *Server) set(expr string, a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answers == nil {
		f.answers = map[string]answer{}
	}
	f.answers[expr] = a
}

// Queries returns the queries of an expression so far, in order; of Any, all of them.
func (f *Server) Queries(expr string) []Query {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.queries), func(q Query) bool { return expr != Any && q.Expr != expr })
}

func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/query_range" {
		http.NotFound(w, r)
		return
	}
	q := Query{Expr: r.FormValue("query"), Start: timeOf(r.FormValue("start")), End: timeOf(r.FormValue("end")),
		Step: seconds(r.FormValue("step"))}
	f.mu.Lock()
	f.queries = append(f.queries, q)
	a, ok := f.answers[q.Expr]
	if !ok {
		a = f.answers[Any]
	}
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if a.instead != nil {
		a.instead(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(matrix(q, a.series))
}

// RoundTrip implements http.RoundTripper.
func (f *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	response := w.Result()
	response.Request = r
	return response, nil
}

func matrix(q Query, all []Series) any {
	type stream struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values"`
	}
	result := []stream{}
	for _, s := range all {
		x := stream{Metric: s.Labels}
		for t := q.Start; !t.After(q.End); t = t.Add(q.Step) {
			if v, ok := s.At(t); ok {
				x.Values = append(x.Values, [2]any{float64(t.UnixMilli()) / 1000, fmt.Sprint(v)})
			}
		}
		if len(x.Values) > 0 {
			result = append(result, x)
		}
	}
	return map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}}
}

func seconds(text string) time.Duration {
	s, _ := strconv.ParseFloat(text, 64)
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

func timeOf(text string) time.Time { return time.UnixMilli(seconds(text).Milliseconds()).UTC() }

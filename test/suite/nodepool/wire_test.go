package nodepool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// moment is when a process is killed at a call.
type moment string

const (
	before moment = "before" // the call is sent
	after  moment = "after"  // the server has answered, and the process has not heard it
)

// kill ends a process at a call.
type kill struct {
	at   int // its number, from 1
	when moment
}

// errDead is what the calls of a process end with that has been killed.
var errDead = errors.New("the process has been killed")

// wire is what all calls of a process go through.
type wire struct {
	kill *kill
	// turn is waited for before each call; nil: nobody waits.
	turn func(ctx context.Context) error

	mu      sync.Mutex
	dead    bool
	journal string   // what the next write of the journal says
	calls   []string // that changed something, or were about to, by name
}

// wrap makes a transport count, and end the process.
func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper{next, func(r *http.Request) (response *http.Response, err error) {
		name, err := w.nameOf(r)
		if err != nil {
			return nil, err
		}
		err = w.do(r.Context(), name, func() error {
			response, err = next.RoundTrip(r) //nolint:bodyclose // it is the caller's
			return err
		})
		return response, err
	}}
}

// do does one call, and ends the process before or after it if that is the one to end at. A call
// without a name changes nothing.
func (w *wire) do(ctx context.Context, name string, call func() error) error {
	if w.isDead() {
		return errDead
	}
	if w.turn != nil {
		if err := w.turn(ctx); err != nil {
			return err
		}
	}
	if name == "" || !w.count(name) {
		return call()
	}
	if w.kill.when == after {
		_ = call() // what it came to nobody hears
	}
	w.die()
	runtime.Goexit() // deferred functions run, and can do no more than those of a process that is gone
	return errDead
}

// count records a call and tells whether the process ends at it.
func (w *wire) count(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, name)
	return w.kill != nil && len(w.calls) == w.kill.at
}

func (w *wire) die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
}

func (w *wire) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// writes says what the next write of the journal is about.
func (w *wire) writes(journal string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = journal
}

// nameOf returns the name of a call that changes something, "" for any other: what is done to which
// kind of thing, or what is written to the journal.
func (w *wire) nameOf(r *http.Request) (string, error) {
	name := ""
	switch target, form := r.Header.Get("X-Amz-Target"), strings.HasPrefix(r.Header.Get("Content-Type"),
		"application/x-www-form-urlencoded"); {
	case target != "":
		name = changing(target[strings.LastIndex(target, ".")+1:])
	case form:
		action, err := actionOf(r)
		if err != nil {
			return "", err
		}
		name = changing(action)
	default:
		name = kubernetesCall(r)
	}
	if name == "update workerpools/status" || name == "PutItem" || name == "UpdateItem" {
		w.mu.Lock()
		defer w.mu.Unlock()
		return "save " + w.journal, nil
	}
	return name, nil
}

// changing drops the names of AWS operations that only read.
func changing(operation string) string {
	for _, prefix := range []string{"Describe", "Get", "List", "Receive", "Query"} {
		if strings.HasPrefix(operation, prefix) {
			return ""
		}
	}
	return operation
}

// actionOf reads the operation of a call in the query protocol.
func actionOf(r *http.Request) (string, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	if err := r.Body.Close(); err != nil {
		return "", err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, err := url.ParseQuery(string(body))
	return form.Get("Action"), err
}

var verbs = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
	http.MethodDelete: "delete"}

// kubernetesCall returns a name such as "create pods/eviction".
func kubernetesCall(r *http.Request) string {
	verb := verbs[r.Method]
	if verb == "" {
		return ""
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	parts = parts[min(len(parts), map[string]int{"api": 2, "apis": 3}[parts[0]]):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return verb + " " + resource
}

// points are the numbers of the calls that a process is worth killing at. What is done again and
// again in one state of the journal, such as renewing the lease and asking for an eviction that is
// refused, is not a point each time.
func points(calls []string) []int {
	var out []int
	journal, times := "", map[[2]string]int{}
	for i, name := range calls {
		most := 3
		if strings.HasPrefix(name, "save ") {
			journal, most = name, 1
		}
		times[[2]string{journal, name}]++
		if times[[2]string{journal, name}] <= most {
			out = append(out, i+1)
		}
	}
	return out
}

// titles names the calls, each with the number of its occurrence.
func titles(calls []string) []string {
	seen := map[string]int{}
	out := slices.Clone(calls)
	for i, name := range calls {
		seen[name]++
		out[i] = fmt.Sprintf("%s %d", name, seen[name])
	}
	return out
}

// roundTripper puts something before another one.
type roundTripper struct {
	next http.RoundTripper
	trip func(*http.Request) (*http.Response, error)
}

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.trip(request)
}

// WrappedRoundTripper lets client-go find what is behind it.
func (r roundTripper) WrappedRoundTripper() http.RoundTripper { return r.next }

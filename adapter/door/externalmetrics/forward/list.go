package forward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/metrics/pkg/apis/external_metrics/v1beta1"

	"github.com/foresail/foresail/adapter/serving"
)

// listEvery is the time between two lists of the metrics of the second adapter.
const listEvery = 30 * time.Second

// Metrics returns the names of the second adapter's metrics as it last listed them, each once and without Foresail's.
func (f *Forwarder) Metrics() []string {
	if names := f.listed.Load(); names != nil {
		return *names
	}
	return nil
}

// Run lists the metrics of the second adapter, and calls changed after each change, until the
// context ends. The last good list stays while there is no other.
func (f *Forwarder) Run(ctx context.Context, changed func()) {
	ticker := time.NewTicker(listEvery)
	defer ticker.Stop()
	var last state
	for {
		last = f.list(ctx, last, changed)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// state is the state of lists that was logged last.
type state struct {
	problem  string   // why the last list was of no use
	shadowed []string // names that are Foresail's
}

// list asks once, and logs what has changed.
func (f *Forwarder) list(ctx context.Context, last state, changed func()) state {
	names, err := f.ask(ctx)
	if ctx.Err() != nil {
		return last
	}
	log := klog.FromContext(ctx).WithValues("address", "https://"+f.host)
	if err != nil {
		if text := err.Error(); !isUnanswered(err) && text != last.problem {
			log.Info("The second adapter does not list its metrics. They are read all the same", "cause", text)
			last.problem = text
		}
		return last
	}
	last.problem = ""
	others, shadowed := split(names)
	f.metrics.shadowed.Set(float64(len(shadowed)))
	if !slices.Equal(shadowed, last.shadowed) {
		log.Info("Metrics of the second adapter have names of Foresail's, and are not read", "metrics", shadowed)
		last.shadowed = shadowed
	}
	if f.listed.Load() == nil || !slices.Equal(others, f.Metrics()) {
		f.listed.Store(&others)
		changed()
	}
	return last
}

// split returns the names that are not Foresail's, each once, and those that are.
func split(names []string) (others, shadowed []string) {
	seen := map[string]bool{}
	for _, name := range names {
		switch {
		case seen[name]:
		case slices.Contains(serving.Metrics(), name):
			shadowed = append(shadowed, name)
		default:
			others = append(others, name)
		}
		seen[name] = true
	}
	slices.Sort(shadowed)
	return others, shadowed
}

// unanswered is why the second adapter has sent no answer.
type unanswered struct{ error }

func (e unanswered) Unwrap() error { return e.error }

func isUnanswered(err error) bool {
	_, ok := errors.AsType[unanswered](err)
	return ok
}

// ask requests the list of metrics.
func (f *Forwarder) ask(ctx context.Context) ([]string, error) {
	limited, cancel := context.WithTimeout(ctx, f.limit)
	defer cancel()
	status, content, err := f.get(limited, prefix)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && !errors.Is(err, errTooLarge) {
		err = unanswered{f.plain(err)}
		f.say(ctx, f.breaker.listed(err))
		return nil, err
	}
	f.say(ctx, f.breaker.listed(nil))
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, fmt.Errorf("status %d: %s", status, strings.TrimSpace(string(content[:min(len(content), 300)])))
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("its list cannot be read: %w", err)
	}
	if list.GroupVersion != v1beta1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("its list is of %q, not of %q", list.GroupVersion, v1beta1.SchemeGroupVersion)
	}
	names := make([]string, 0, len(list.APIResources))
	for _, r := range list.APIResources {
		if r.Name != "" && !strings.Contains(r.Name, "/") { // nothing else is a metric
			names = append(names, r.Name)
		}
	}
	return names, nil
}

func (f *Forwarder) get(ctx context.Context, path string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+f.host+path, nil)
	if err != nil {
		return 0, nil, err
	}
	r.Header = http.Header{"Via": {hop}, "Accept": {"application/json"}}
	response, err := f.transport.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	if err == nil && len(content) > maxBytes {
		err = errTooLarge
	}
	return response.StatusCode, content, err
}

package sourcetest

import (
	"maps"
	"slices"
	"sync"

	"github.com/foresail/foresail/adapter/source"
	"github.com/foresail/foresail/pipeline"
)

// Recorder is a sink that keeps what it is given. It is safe for concurrent use.
type Recorder struct {
	mu       sync.Mutex
	calls    int
	samples  map[string][]pipeline.Sample
	failures map[string][]string
	failing  map[string]string
	troubles []string
}

var _ source.Sink = (*Recorder)(nil)

// NewRecorder returns a recorder that has been given nothing.
func NewRecorder() *Recorder {
	return &Recorder{samples: map[string][]pipeline.Sample{}, failures: map[string][]string{},
		failing: map[string]string{}}
}

// Append implements source.Sink.
func (r *Recorder) Append(instance string, samples ...pipeline.Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	r.samples[instance] = append(r.samples[instance], samples...)
	delete(r.failing, instance)
}

// Fail implements source.Sink.
func (r *Recorder) Fail(instance string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	r.failures[instance] = append(r.failures[instance], err.Error())
	r.failing[instance] = err.Error()
}

// SourceFailed implements source.Sink.
func (r *Recorder) SourceFailed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.troubles = append(r.troubles, text)
}

// Calls returns how often the sink has been called.
func (r *Recorder) Calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// All returns the samples by instance.
func (r *Recorder) All() map[string][]pipeline.Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.samples)
}

// Samples returns the samples of an instance.
func (r *Recorder) Samples(instance string) []pipeline.Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.samples[instance])
}

// Values returns the values of the samples of an instance.
func (r *Recorder) Values(instance string) []float64 {
	var out []float64
	for _, x := range r.Samples(instance) {
		out = append(out, x.V)
	}
	return out
}

// Failures returns all failures of an instance.
func (r *Recorder) Failures(instance string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failures[instance])
}

// Failing returns the last failure of an instance; "" if samples came after it.
func (r *Recorder) Failing(instance string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing[instance]
}

// SourceErrors returns all errors of the source, "" for nil.
func (r *Recorder) SourceErrors() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.troubles)
}

// LastSourceError returns the newest of SourceErrors, "(none)" without any.
func (r *Recorder) LastSourceError() string {
	all := r.SourceErrors()
	if len(all) == 0 {
		return "(none)"
	}
	return all[len(all)-1]
}

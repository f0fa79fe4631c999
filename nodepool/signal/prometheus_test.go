package signal

import (
	"net/http"
	"testing"
	"time"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/nodequery"
	"github.com/foresail/foresail/internal/nodequery/nodequerytest"
	"github.com/foresail/foresail/internal/promapi"
)

// fakeProm is a server with the same answer to every query.
type fakeProm struct{ nodequerytest.Server }

func (f *fakeProm) set(all ...fakeSeries) { f.Set(nodequerytest.Any, all...) }

func (f *fakeProm) answer(instead http.HandlerFunc) { f.Instead(nodequerytest.Any, instead) }

func (f *fakeProm) queries() []nodequerytest.Query { return f.Queries(nodequerytest.Any) }

type fakeSeries = nodequerytest.Series

// load returns a series of a node.
func load(node string, at func(t time.Time) float64) fakeSeries { return nodequerytest.Of(node, at) }

func constant(v float64) func(time.Time) float64 { return nodequerytest.Constant(v) }

const promAddress = "http://prometheus:9090"

// asking returns the options of a pool with one signal, from a fake server.
func asking(f http.RoundTripper, name string, query v1alpha1.SignalQuery, threshold string) Options {
	spec := v1alpha1.WorkerPoolSpec{
		Max:     100,
		Signals: []v1alpha1.PoolSignal{{Name: name, Threshold: quantityOf(threshold), Prometheus: &query}},
	}
	o := OptionsOf(&spec)
	o.DefaultAddress, o.Servers = promAddress, clients(f)
	return o
}

// large accepts answers of any size that tests have.
func large(f http.RoundTripper) Servers {
	return promapi.NewClients(promapi.Options{MaxSeries: nodequery.MaxSeries, MaxBytes: 1 << 30, Transport: f})
}

func clients(f http.RoundTripper) Servers {
	return promapi.NewClients(promapi.Options{MaxSeries: nodequery.MaxSeries, MaxBytes: 1 << 20, Transport: f})
}

// cpuOf returns a pool's signals with cpu from a fake server.
func cpuOf(t testing.TB, f *fakeProm) *Set {
	s := newSet(t, asking(f, CPU, v1alpha1.SignalQuery{Query: "load", NodeLabel: "node"}, "700m"))
	return s
}

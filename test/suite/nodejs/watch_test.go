package nodejs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/env/foresail"
	"github.com/foresail/foresail/test/env/stack"
)

// server is what one Node.js process reports.
type server struct{ utilization, requests float64 }

// forecast is what the adapter reports of one PredictedMetric, by the names of its metrics without
// "foresail_".
type forecast map[string]float64

// moment is how everything stood at one second.
type moment struct {
	at time.Duration
	stack.State
	servers   map[string]server // by address; one that did not answer is not there
	elu, heap forecast
}

// leastUtilization returns that of the process that is busy least; 0 unless all the ready ones have answered.
func (m moment) leastUtilization() float64 {
	if len(m.servers) < m.Ready {
		return 0
	}
	least := 1.0
	for _, s := range m.servers {
		least = min(least, s.utilization)
	}
	return least
}

func (m moment) String() string {
	var loops []string
	for _, address := range slices.Sorted(maps.Keys(m.servers)) {
		loops = append(loops, fmt.Sprintf("%.2f (%.0f)", m.servers[address].utilization, m.servers[address].requests))
	}
	return fmt.Sprintf("%3.0f s: replicas %d, ready %d; loops (requests) %s; forecast: %.2f a pod now, %.2f then, wants %.0f, %.1f samples/s; heap %.1f MB, wants %.0f",
		m.at.Seconds(), m.Replicas, m.Ready, strings.Join(loops, ", "),
		m.elu["load_per_instance"], m.elu["predicted_load_per_instance"], m.elu["desired_replicas"],
		m.elu["samples_per_second"],
		m.heap["load_per_instance"]/1e6, m.heap["desired_replicas"])
}

// look reads everything once. addresses are those of the ready pods' requests.
func (r *rig) look(t *testing.T, at time.Duration, addresses []string) moment {
	t.Helper()
	state, err := r.stack.Look(t.Context(), r.app)
	require.NoError(t, err)
	families := r.adapter.MustMetrics(t)
	m := moment{at: at, State: state, servers: map[string]server{}, elu: forecastOf(families, r.app.Name+"-elu"),
		heap: forecastOf(families, r.app.Name+"-heap")}
	for _, address := range addresses {
		if s, ok := readServer(t, address); ok {
			m.servers[address] = s
		}
	}
	return m
}

// forecastOf returns the metrics of one PredictedMetric.
func forecastOf(families foresail.Families, name string) forecast {
	out := forecast{}
	for metric, value := range values(families, "predictedmetric", name) {
		out[strings.TrimPrefix(metric, "foresail_")] = value
	}
	return out
}

// values returns the gauges and counters that have a label value, or no label where that is "".
func values(families foresail.Families, label, want string) map[string]float64 {
	out := map[string]float64{}
	for name := range families {
		for _, m := range families.Find(name, label, want) {
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return out
}

// readServer reads a process's own page. A loop that is busy may be late.
func readServer(t *testing.T, address string) (server, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	host, _, _ := strings.Cut(address, ":")
	families, err := foresail.ReadMetrics(ctx, "http://"+host+":9090/metrics")
	if err != nil {
		return server{}, false
	}
	v := values(families, "", "")
	return server{utilization: v["nodejs_eventloop_utilization"], requests: v["http_requests_total"]}, true
}

package extender

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trouble is what is wrong between a scheduler and the extender while pods come.
type trouble struct {
	name string
	pods int
	// begin has it begin. What it returns has it end, and is called when the pods are there; nil: nothing.
	begin func(p *proxy, f *extenderProcess) (end func())
	// during is done while pods come; nil: nothing.
	during func(s *stage, w *witness, f *extenderProcess)
	// stuck is told if no pod is placed while it lasts.
	stuck bool
}

func troubles() []trouble {
	inject := func(what fault) func(*proxy, *extenderProcess) func() {
		return func(p *proxy, _ *extenderProcess) func() {
			p.inject(what)
			return nil
		}
	}
	say := func(code int, body string) func(*proxy, *extenderProcess) func() {
		return inject(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
			return true
		})
	}
	return []trouble{
		{name: "none", pods: 200, begin: inject(nil)},
		{name: "refused", pods: 200, begin: func(p *proxy, _ *extenderProcess) func() {
			p.close()
			return func() { p.listen(p.address) }
		}},
		// It takes connections, and nothing ever comes back on them.
		{name: "black hole", pods: 8, begin: func(p *proxy, _ *extenderProcess) func() {
			p.close()
			hole, err := net.Listen("tcp", p.address)
			require.NoError(p.t, err)
			return func() {
				require.NoError(p.t, hole.Close())
				p.listen(p.address)
			}
		}},
		{name: "no answer", pods: 8, begin: inject(func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		})},
		{name: "slow (100 ms)", pods: 20, begin: inject(func(http.ResponseWriter, *http.Request) bool {
			time.Sleep(100 * time.Millisecond)
			return false
		})},
		{name: "malformed", pods: 200, begin: say(http.StatusOK, "<html>")},
		{name: "cut off", pods: 200, begin: inject(func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`{"NodeNames":["node`))
			panic(http.ErrAbortHandler)
		})},
		{name: "no body", pods: 200, begin: say(http.StatusOK, "")},
		{name: "status 500", pods: 200, begin: say(http.StatusInternalServerError, "no")},
		// It is taken for a refusal of every node, without an error. Foresail never says it.
		{name: "{}", pods: 50, begin: say(http.StatusOK, "{}"), stuck: true},
		{name: "restart in a burst", pods: crowd, begin: inject(nil),
			during: func(s *stage, w *witness, f *extenderProcess) {
				s.until("some pods to be bound", func() bool { return w.bound() >= 100 })
				require.NoError(s, f.Kill())
				without := w.bound() + 100
				s.until("some more pods to be bound", func() bool { return w.bound() >= without })
				f.start()
			}},
	}
}

// TestSchedulingGoesOn has a scheduler place pods while it cannot talk with the extender, or gets
// answers that are none.
func TestSchedulingGoesOn(t *testing.T) { testTroubles(t) }

func testTroubles(t *testing.T) {
	f := startForesail(t)
	p := startProxy(t, f.address)
	scheduler := startScheduler(t, "faults", asking(t, p.address))
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "trouble\tpods\tplaced meanwhile\tplaced\ttook\tpods/s\tconnections")
	for i, trouble := range troubles() {
		t.Run(trouble.name, func(t *testing.T) {
			s := newStage(t, fmt.Sprintf("fault-%d", i))
			s.untilListed(f.probe, s.addNodes(12, worker))
			p.t = t
			witness := s.watch("faulty")
			connections := p.conns.Load()
			end := trouble.begin(p, f)
			created := make(chan error, 1)
			go func() {
				created <- s.tryCreate(trouble.pods,
					spec{app: "faulty", scheduler: scheduler.Name, cpu: "20m", memory: "32Mi",
						uses: use{0.02, 32 << 20}}, nil)
			}()
			if trouble.during != nil {
				trouble.during(s, witness, f)
			}
			require.NoError(t, <-created)
			meanwhile := trouble.pods
			if trouble.stuck {
				s.until("all to be refused", func() bool { return witness.refused() == trouble.pods })
				meanwhile = witness.bound()
				assert.Zero(t, meanwhile, "pods that a refusal of all nodes lets pass")
				p.inject(nil)
				// Nothing has changed that pods could wait for: the scheduler tries them again when
				// something has.
				s.addNodes(1, worker)
			}
			s.until("all to be bound", func() bool { return witness.bound() == trouble.pods })
			p.inject(nil)
			if end != nil {
				end()
			}
			n, took, rate := witness.rate()
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.1f s\t%.1f\t%d\n", trouble.name, trouble.pods, meanwhile, n,
				took.Seconds(), rate, p.conns.Load()-connections)
		})
	}
	require.NoError(t, w.Flush())
	t.Logf("scheduling while there is trouble with the extender:\n%s", table.String())
}

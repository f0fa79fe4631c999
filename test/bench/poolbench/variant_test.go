package poolbench

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/config"
	"github.com/foresail/foresail/nodepool/forecast"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/signal"
	"github.com/foresail/foresail/nodepool/state"
)

// variant is a way to run the same pool.
type variant struct {
	name      string
	threshold string        // of the signal of requests
	horizon   time.Duration // the least that a forecast looks ahead; 0 = the default
	present   bool          // the forecast is disabled
	mute      bool          // the signal asks for nothing: pending pods alone do
}

// variants are compared with each other. At the lower threshold nodes have more headroom.
//
// While a scale-up is open no other begins. So the nodes of the next one are there only after two
// joins, which is how far one of the forecasts looks.
func variants() []variant {
	return []variant{
		{name: "forecast, 70%", threshold: "700m"},
		{name: "present load, 70%", threshold: "700m", present: true},
		{name: "forecast of two joins, 90%", threshold: "900m", horizon: 150 * time.Second},
		{name: forecasting, threshold: "900m"},
		{name: presentLoad, threshold: "900m", present: true},
		{name: pendingAlone, threshold: "900m", present: true, mute: true},
	}
}

// The variants that a test tells something of.
const (
	forecasting  = "forecast, 90%"
	presentLoad  = "present load, 90%"
	pendingAlone = "pending pods alone"
)

// settings are the limits on what a pool does, which all variants have in common.
type settings struct {
	name                   string
	maxBatchUp             int32
	maxDown                int
	cooldownUp, coolDown   time.Duration
	idleFor                time.Duration
	idleShare              string
	pendingFor, joinsAfter time.Duration
}

// unhindered lets a pool launch what it wants when it wants to, so that the voices alone make a difference.
func unhindered() settings {
	return settings{
		name: "no limit of a batch, no cooldown of scale-ups", maxBatchUp: 100, maxDown: 4, coolDown: 5 * time.Minute,
		idleFor: 10 * time.Minute, idleShare: "1", pendingFor: 30 * time.Second, joinsAfter: time.Minute,
	}
}

// defaults are those of the API, but for the sizes of the pool.
func defaults() settings {
	return settings{
		name: "the defaults: 2 nodes a batch, cooldowns of 5 and 10 min", maxBatchUp: 2, maxDown: 1,
		cooldownUp: 5 * time.Minute, coolDown: 10 * time.Minute,
		idleFor: 10 * time.Minute, idleShare: "300m", pendingFor: 30 * time.Second, joinsAfter: time.Minute,
	}
}

// spec is that of the pool, all else as the API has it by default.
func (s settings) spec(v variant) v1alpha1.WorkerPoolSpec {
	of := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	share := resource.MustParse(s.idleShare)
	forecast := v1alpha1.PoolForecastEnabled
	if v.present {
		forecast = v1alpha1.PoolForecastDisabled
	}
	return v1alpha1.WorkerPoolSpec{
		Min: 2, Max: 100, MaxBatchUp: &s.maxBatchUp,
		Signals:    []v1alpha1.PoolSignal{{Name: signal.Requests, Threshold: resource.MustParse(v.threshold)}},
		PendingFor: of(s.pendingFor),
		Idle:       v1alpha1.IdlePolicy{For: of(s.idleFor), CPU: &share, Memory: &share},
		Cooldown:   v1alpha1.PoolCooldown{Up: of(s.cooldownUp), Down: of(s.coolDown)},
		Forecast:   forecast,
	}
}

// muted has signals ask for nothing. What they say of removals stays.
type muted struct{ forecast.Signals }

func (m muted) Observe(ctx context.Context, o signal.Observation) []plan.Signal {
	all := m.Signals.Observe(ctx, o)
	for i := range all {
		all[i].Desired = 0
	}
	return all
}

// run plays a profile to a pool, in virtual time.
func run(t *testing.T, p profile, s settings, v variant, seed uint64) (out outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		stage := newPlay(time.Now, seed, func(r *rand.Rand) time.Duration {
			return time.Duration(float64(s.joinsAfter) * (0.8 + 0.4*r.Float64()))
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		pool := newPool(t, stage, s.spec(v), s.maxDown, v)
		running.Go(func() { require.NoError(t, pool.Run(ctx)) })
		perform(stage, p)
		cancel()
		running.Wait()
		out = stage.end()
	})
	return out
}

func newPool(t *testing.T, stage *play, spec v1alpha1.WorkerPoolSpec, maxDown int, v variant) *nodepool.Pool {
	o := signal.OptionsOf(&spec)
	o.Forecast.HorizonMin = max(o.Forecast.HorizonMin, v.horizon)
	set, err := signal.New(o)
	require.NoError(t, err)
	var signals forecast.Signals = set
	if v.mute {
		signals = muted{set}
	}
	pool, err := nodepool.New(nodepool.Options{
		Name: poolName, Owner: "this", Spec: func() (config.Spec, error) {
			s := config.Of(poolName, spec)
			s.Plan.MaxBatchDown = maxDown
			return s, nil
		},
		Store: &memory{}, Provider: stage, Observer: stage, Signals: signals, Drainer: stage, Labeler: stage,
		Now: time.Now, Seed: 1,
	})
	require.NoError(t, err)
	return pool
}

// perform steps through a profile once a second. Each step is a little later within its second than
// the one before, so that no timer of the pool, which are whole seconds after some step, ends
// together with one.
func perform(stage *play, p profile) {
	replicas := p.replicas()
	began := time.Now()
	for k := time.Duration(0); k*time.Second < p.warmUp+p.length; k++ {
		time.Sleep(time.Until(began.Add(k*time.Second + k*time.Microsecond + 500*time.Millisecond)))
		if k*time.Second == p.warmUp {
			stage.begin()
		}
		stage.step(replicas(k * time.Second))
		synctest.Wait()
	}
}

// begin has what happens from now on counted.
func (p *play) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counting = p.now()
}

// end counts the pods that still wait.
func (p *play) end() outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.pods {
		if d.on == nil {
			p.outcome.waited(p, d, p.now())
		}
	}
	return p.outcome
}

// memory keeps one record as stores do.
type memory struct {
	mu   sync.Mutex
	data []byte
}

func (m *memory) Load(context.Context, string) (state.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read()
}

func (m *memory) read() (state.Record, error) {
	if m.data == nil {
		return state.Record{}, nil
	}
	return state.Decode(m.data)
}

func (m *memory) Save(_ context.Context, _ string, r state.Record) (state.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stored, err := m.read()
	if err != nil {
		return r, err
	}
	if stored.Version != r.Version {
		return r, state.ErrConflict
	}
	r.Version++
	m.data, err = state.Encode(r)
	return r, err
}

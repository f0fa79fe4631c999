package signal

import (
	"cmp"
	"strconv"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
)

// Requests is the name of the signal that needs no metrics: pods' requests relative to allocatable resources.
const Requests = "requests"

// The names of the signals that the idle rule reads.
const (
	CPU    = "cpu"
	Memory = "memory"
)

// Options configure a [Set]. Those of a WorkerPool's spec follow the rules of its
// CustomResourceDefinition, which the API server has evaluated.
type Options struct {
	Signals  []Config
	Forecast Forecast
	Seasonal *SeasonalConfig // nil: no seasonal floor

	// DefaultAddress is the Prometheus server of queries without an address; "" = none.
	DefaultAddress string
	// Servers connects to Prometheus servers; nil = none: signals with a query are rejected.
	Servers Servers
}

// Servers connects to Prometheus servers.
type Servers interface {
	// API returns the API of the server at an address, as [promapi.Clients] do. The error names the address and what is
	// accepted.
	API(address string) (API, error)
}

// API is the API of a Prometheus server, of which QueryRange is used.
type API = v1.API

var _ Servers = (*promapi.Clients)(nil)

// Config configures one signal.
type Config struct {
	Name      string
	Threshold float64
	Down      float64       // load below which a worker may be removed; 0 = only the margin decides
	For       time.Duration // how long it must recommend more workers before it takes effect
	Query     *Query        // nil: requests
}

// Query is a query to Prometheus.
type Query struct {
	Address   string // "" = the default server
	Expr      string
	NodeLabel string             // "" = one value for the pool
	Value     v1alpha1.PoolValue // meaning of that value
}

// Forecast configures the forecasts of all signals.
type Forecast struct {
	Interval, Window       time.Duration
	RedistributionTimeout  time.Duration
	StartupTime            time.Duration // T_I until it was measured
	HorizonMin, HorizonMax time.Duration
	ScaleDownMargin        *float64 // μ; nil = the default of the kind of signal
	Disabled               bool     // only the present load counts
}

// SeasonalConfig configures the floor from past weeks.
type SeasonalConfig struct {
	Query Query
	Weeks int
}

// measuredFor is the default of For for measured signals. Requests are exact and take effect at once.
const measuredFor = 3 * time.Minute

// measuredMargin is the headroom that a removal leaves to a measured load, which fluctuates.
const measuredMargin = 0.3

// OptionsOf returns the options of a pool's spec. Fields with a default may be absent.
func OptionsOf(spec *v1alpha1.WorkerPoolSpec) Options {
	spec = spec.DeepCopy()
	spec.Default()
	o := Options{Forecast: forecastOf(spec.Interval.Duration, spec.StartupTime.Duration)}
	o.Forecast.Disabled = spec.Forecast == v1alpha1.PoolForecastDisabled
	for i := range spec.Signals {
		o.Signals = append(o.Signals, configOf(&spec.Signals[i]))
	}
	if s := spec.Seasonal; s != nil {
		o.Seasonal = &SeasonalConfig{
			Query: Query{Address: s.Address, Expr: s.Query, Value: v1alpha1.PoolValueSum},
			Weeks: int(*s.Weeks),
		}
	}
	return o
}

// forecastOf returns the options of forecasts that are the same for all pools, with the two that users set.
func forecastOf(interval, startupTime time.Duration) Forecast {
	return Forecast{
		Interval: interval, StartupTime: startupTime,
		// As many samples show a rise, and cost little to compute.
		Window: 60 * interval,
		// Pods move to a new node over some samples: it carries less than its share until then.
		RedistributionTimeout: 12 * interval,
		// A shorter horizon would be over before the next decision. Beyond ten minutes a trend says
		// nothing any more: load that is farther ahead is the task of the seasonal floor.
		HorizonMin: 2 * interval, HorizonMax: max(10*time.Minute, 2*interval),
	}
}

func configOf(s *v1alpha1.PoolSignal) Config {
	c := Config{Name: s.Name, Threshold: number(&s.Threshold), Down: number(s.DownThreshold)}
	if s.Prometheus != nil {
		query := queryOf(s.Prometheus)
		c.Query, c.For = &query, measuredFor
	}
	if s.For != nil {
		c.For = s.For.Duration
	}
	return c
}

func queryOf(q *v1alpha1.SignalQuery) Query {
	return Query{Address: q.Address, Expr: q.Query, NodeLabel: q.NodeLabel, Value: q.Value}
}

// number returns the float nearest to a quantity, so that 700m equals 0.7; 0 for nil.
func number(q *resource.Quantity) float64 {
	if q == nil {
		return 0
	}
	// Beyond the range of floats this is an infinity, which the pipeline rejects.
	f, _ := strconv.ParseFloat(q.AsDec().String(), 64)
	return f
}

// params returns the parameters of a signal's pipeline, without limits: the plan applies minimum, maximum, batch and
// cooldowns.
func (f *Forecast) params(threshold float64) pipeline.Params {
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Min, p.Max, p.MaxStep = threshold, 1, maxWorkers, 0
	p.Interval, p.Window = f.Interval, f.Window
	p.RedistributionTimeout = f.RedistributionTimeout
	p.StartupTime, p.HorizonMin, p.HorizonMax = f.StartupTime, f.HorizonMin, f.HorizonMax
	p.HorizonMultiplier, p.WindowFollowsHorizon = horizonMultiplier, false
	p.ReactionDelay = 0 // the pool itself acts on the forecast
	p.Lateness = 0      // a learned margin is calibrated to an HPA, and costs whole nodes: NoiseMargin stays
	p.ScaleDownMargin = f.margin(measuredMargin)
	p.PendingExpiry = f.HorizonMax
	p.StaleAfter = f.staleAfter()
	p.Cooldown = pipeline.Cooldown{}
	if f.Disabled {
		p.Method, p.NoiseMargin = pipeline.Holt, 0
		p.HorizonMin, p.HorizonMax = 0, 0
		p.LevelUp, p.LevelDown, p.TrendUp, p.TrendDown = 1, 1, 0, 0
	}
	return p
}

// margin returns the headroom that a removal leaves.
func (f *Forecast) margin(ofKind float64) float64 {
	if f.ScaleDownMargin != nil {
		return *f.ScaleDownMargin
	}
	return ofKind
}

// horizonMultiplier is the horizon of a forecast in units of the startup time.
const horizonMultiplier = 1.2

// maxWorkers exceeds the maximum of any pool.
const maxWorkers = 1 << 20

// staleAfter returns the age from which data is not used.
func (f *Forecast) staleAfter() time.Duration { return max(3*f.Interval, 30*time.Second) }

// horizon returns the horizon of a forecast for a T_I; 0 = not measured yet.
func (f *Forecast) horizon(startupTime time.Duration) time.Duration {
	if f.Disabled {
		return 0
	}
	horizon := time.Duration(horizonMultiplier * float64(cmp.Or(startupTime, f.StartupTime)))
	return min(max(horizon, f.HorizonMin), f.HorizonMax)
}

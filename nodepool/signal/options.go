package signal

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/promapi"
	"github.com/foresail/foresail/pipeline"
)

// Requests is the name of the signal that needs no metrics: what pods request of what nodes can allocate.
const Requests = "requests"

// The names of the signals that the idle rule looks at.
const (
	CPU    = "cpu"
	Memory = "memory"
)

// Options of a Set.
type Options struct {
	Signals  []Config
	Forecast Forecast
	Seasonal *SeasonalConfig // nil: no seasonal floor

	// DefaultAddress is that of the Prometheus server of queries that name none; "" = there is none.
	DefaultAddress string
	// Servers are the Prometheus servers; nil = none, and signals that ask them are refused.
	Servers Servers
}

// Servers connects to Prometheus servers.
type Servers interface {
	// API returns the API of the server at an address, as [promapi.Clients] do. The error names the address and what
	// would be accepted.
	API(address string) (API, error)
}

// API is that of a Prometheus server. It is QueryRange that is used of it.
type API = v1.API

var _ Servers = (*promapi.Clients)(nil)

// Config is one signal.
type Config struct {
	Name      string
	Threshold float64
	Down      float64       // the load below which a worker may be removed; 0 = the margin alone decides
	For       time.Duration // how long it must ask before it is heard
	Query     *Query        // nil: requests
}

// Query is what Prometheus is asked.
type Query struct {
	Address   string // "" = the default one
	Expr      string
	NodeLabel string             // "" = one value for the pool
	Value     v1alpha1.PoolValue // what that value is
}

// Forecast says how forecasts are made.
type Forecast struct {
	Interval, Window       time.Duration
	RedistributionTimeout  time.Duration
	StartupTime            time.Duration // T_I until it has been measured
	HorizonMin, HorizonMax time.Duration
	ScaleDownMargin        *float64 // μ; nil is that of the kind of signal
	Disabled               bool     // the present alone counts
}

// SeasonalConfig says how past weeks are learned from.
type SeasonalConfig struct {
	Query         Query
	Weeks         int
	MinConfidence float64 // below which the floor is not heard
}

// measuredFor is how long a measured signal must ask, if nobody says. Requests are promises, and are heard at once.
const measuredFor = 3 * time.Minute

// measuredMargin is the headroom that a removal leaves to a measured load, which is never twice the same.
const measuredMargin = 0.3

// OptionsOf returns the options that the spec of a pool stands for. A field that the API server would fill in may be
// absent.
func OptionsOf(spec *v1alpha1.WorkerPoolSpec) Options {
	spec = spec.DeepCopy()
	spec.Default()
	f := &spec.Forecast
	o := Options{Forecast: Forecast{
		Interval:              f.Interval.Duration,
		Window:                f.Window.Duration,
		RedistributionTimeout: f.RedistributionTimeout.Duration,
		StartupTime:           f.StartupTime.Duration,
		HorizonMin:            f.HorizonMin.Duration,
		HorizonMax:            f.HorizonMax.Duration,
		Disabled:              f.Disabled,
	}}
	for i := range spec.Signals {
		o.Signals = append(o.Signals, configOf(&spec.Signals[i]))
	}
	if s := spec.Seasonal; s != nil {
		o.Seasonal = &SeasonalConfig{Query: queryOf(&s.Prometheus), Weeks: int(*s.Weeks), MinConfidence: number(s.MinConfidence)}
	}
	if f.ScaleDownMargin != nil {
		o.Forecast.ScaleDownMargin = new(number(f.ScaleDownMargin))
	}
	return o
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

// number returns the float nearest to a quantity, so that 700m and 0.7 are the same; 0 if there is none.
func number(q *resource.Quantity) float64 {
	if q == nil {
		return 0
	}
	// Beyond the range of floats this is an infinity, which the pipeline refuses by name.
	f, _ := strconv.ParseFloat(q.AsDec().String(), 64)
	return f
}

// params returns the parameters of a signal's pipeline. What it wants is limited by nobody here: minimum, maximum, batch
// and cooldowns are the plan's.
func (f *Forecast) params(threshold float64) pipeline.Params {
	p := pipeline.AdaptiveParams()
	p.Threshold, p.Min, p.Max, p.MaxStep = threshold, 1, mostWorkers, 0
	p.Interval, p.Window = f.Interval, f.Window
	p.RedistributionTimeout = f.RedistributionTimeout
	p.StartupTime, p.HorizonMin, p.HorizonMax = f.StartupTime, f.HorizonMin, f.HorizonMax
	p.HorizonMultiplier, p.WindowFollowsHorizon = horizonMultiplier, false
	p.ReactionDelay = 0 // we act ourselves
	p.ScaleDownMargin = measuredMargin
	if f.ScaleDownMargin != nil {
		p.ScaleDownMargin = *f.ScaleDownMargin
	}
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

// horizonMultiplier is how far a forecast looks, in units of what launches take.
const horizonMultiplier = 1.2

// mostWorkers is more than any pool may have.
const mostWorkers = 1 << 20

// staleAfter is the age from which on data is not used.
func (f *Forecast) staleAfter() time.Duration { return max(3*f.Interval, 30*time.Second) }

// horizon is how far ahead a forecast looks, given T_I; 0 = not yet measured.
func (f *Forecast) horizon(startupTime time.Duration) time.Duration {
	if f.Disabled {
		return 0
	}
	return min(max(time.Duration(horizonMultiplier*float64(cmp.Or(startupTime, f.StartupTime))), f.HorizonMin), f.HorizonMax)
}

// validate reports all that is wrong with o, by the names of fields of a WorkerPool's spec.
func (o *Options) validate() error {
	problems := o.Forecast.problems()
	seen := map[string]bool{}
	for i := range o.Signals {
		c := &o.Signals[i]
		if seen[c.Name] {
			problems = append(problems, fmt.Errorf("signals[%d].name: %q: must be unique", i, c.Name))
		}
		seen[c.Name] = true
		for _, err := range c.problems() {
			problems = append(problems, fmt.Errorf("signals[%d].%w", i, err))
		}
	}
	return errors.Join(problems...)
}

// problems are what is wrong with a signal.
func (c *Config) problems() (out []error) {
	refuse := func(field string, value any, accept string) {
		out = append(out, &pipeline.FieldError{Field: field, Value: value, Accept: accept})
	}
	if !(c.Threshold > 0) || math.IsInf(c.Threshold, 0) {
		refuse("threshold", c.Threshold, "finite and above 0")
	} else if !(c.Down >= 0 && c.Down < c.Threshold) {
		refuse("downThreshold", c.Down, fmt.Sprintf("above 0 and below the threshold (%v)", c.Threshold))
	}
	switch {
	case (c.Query == nil) != (c.Name == Requests):
		refuse("prometheus", strconv.Quote(c.Name), "given for each signal but "+Requests)
	case c.Query != nil && strings.TrimSpace(c.Query.Expr) == "":
		refuse("prometheus.query", strconv.Quote(c.Query.Expr), "an expression of PromQL")
	}
	if c.For < 0 {
		refuse("for", c.For, "0s or more")
	}
	return out
}

// problems are what is wrong with what all forecasts have in common.
func (f *Forecast) problems() (out []error) {
	err, _ := f.params(1).Validate().(interface{ Unwrap() []error })
	if err == nil {
		return nil
	}
	for _, one := range err.Unwrap() {
		if field, ok := errors.AsType[*pipeline.FieldError](one); ok && fieldNames[field.Field] != "" {
			one = &pipeline.FieldError{Field: fieldNames[field.Field], Value: field.Value, Accept: inPool.Replace(field.Accept)}
		}
		out = append(out, one)
	}
	return out
}

// fieldNames says the names of a WorkerPool's fields for those that a PredictedMetric has.
var fieldNames = map[string]string{
	"sampleInterval":           "forecast.interval",
	"window":                   "forecast.window",
	"redistribution.timeout":   "forecast.redistributionTimeout",
	"startup.initial":          "forecast.startupTime",
	"horizon.min":              "forecast.horizonMin",
	"horizon.max":              "forecast.horizonMax",
	"decision.scaleDownMargin": "forecast.scaleDownMargin",
}

// inPool says them where a text names them.
var inPool = strings.NewReplacer("horizon.min", "forecast.horizonMin")

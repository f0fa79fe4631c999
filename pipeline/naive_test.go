package pipeline_test

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/foresail/foresail/pipeline"
)

// naive is a second implementation of the pipeline, written from the
// specification's formulas and not from the package's code: maps and loops,
// no state and no sharing. The package is compared with it.

// naiveTick holds the results of the five stages for one tick.
type naiveTick struct {
	known, unknown int
	imputed        map[string]float64 // v̂ of every active instance
	weight         map[string]float64
	sum            float64 // s_t
	raw            float64 // Â
	weighted       float64 // Ã
	absorbed       float64 // Ā, without external demand
	demand         float64
	delta          float64 // Δ
	level, trend   float64
	missed         float64 // by how much the input differed from its forecast; 0 at the first tick
	margins        []margin
}

// margin is how far a tick was from taking another branch of the formulas, how much that branch would have changed,
// and whether no distance at all comes out as 0 in any order of the sums.
type margin struct {
	distance, change float64
	exact            bool
}

// tie reports whether a rounding error decides the result of the tick, in a window whose sums reach peak. There the
// formulas jump, and two implementations that sum in another order may differ.
func (t *naiveTick) tie(peak float64) bool {
	for _, m := range t.margins {
		if !(m.exact && m.distance == 0) && math.Abs(m.distance) <= 1e-12*peak && math.Abs(m.change) > 1e-12*peak {
			return true
		}
	}
	return false
}

type naiveResult struct {
	ticks    []int64
	at       map[int64]*naiveTick
	last     int64
	level    float64
	trend    float64
	horizon  time.Duration
	total    float64 // A_H
	damped   float64 // A_ω
	weight   float64 // N^w
	active   int
	target   int
	now      float64 // P_now
	ahead    float64 // P_H
	required float64 // N(A_ω, τ)
	serve    float64 // S_H
	dropped  int

	direction pipeline.Direction
	desired   int
	action    pipeline.Action
}

type naiveError string

func (e naiveError) Error() string { return string(e) }

const (
	naiveNoData = naiveError("no data")
	naiveStale  = naiveError("stale")
)

// Metric model.

func naiveLoad(m pipeline.Model, v float64) float64 { // g
	switch m.Kind {
	case pipeline.Overhead:
		return v - m.Baseline
	case pipeline.Quadratic:
		return v * v
	default:
		return v
	}
}

func naiveProject(m pipeline.Model, s, n float64) float64 { // P
	switch m.Kind {
	case pipeline.Overhead:
		return s/n + m.Baseline
	case pipeline.Quadratic:
		return math.Sqrt(math.Max(0, s/n)) // g⁻¹ ends at 0
	default:
		return s / n
	}
}

func naiveRequired(m pipeline.Model, s, threshold float64) float64 { // N
	return s / naiveLoad(m, threshold)
}

// Stage 1.

// naiveUsable sorts the samples, drops the unusable and lets the last of equal times win.
func naiveUsable(samples []pipeline.Sample, ok func(float64) bool, now,
	step int64) (usable []pipeline.Sample, dropped int) {
	byTime := map[int64]float64{}
	for _, s := range samples {
		if math.IsNaN(s.V) || math.IsInf(s.V, 0) || s.T > now+step || !ok(s.V) {
			dropped++
			continue
		}
		byTime[s.T] = s.V
	}
	for t, v := range byTime {
		usable = append(usable, pipeline.Sample{T: t, V: v})
	}
	sort.Slice(usable, func(i, j int) bool { return usable[i].T < usable[j].T })
	return usable, dropped
}

// naiveAt is the aligned value at the tick t.
func naiveAt(usable []pipeline.Sample, t int64) (float64, bool) {
	for i := 0; i+1 < len(usable); i++ {
		a, b := usable[i], usable[i+1]
		if t == b.T {
			return b.V, true // which the formula below comes to but for rounding, and 0 must be 0
		}
		if a.T <= t && t < b.T {
			return a.V + (b.V-a.V)*float64(t-a.T)/float64(b.T-a.T), true
		}
	}
	return 0, false
}

// naiveDemand is the external demand at the tick t: aligned like samples, held after the last,
// nothing before the first.
func naiveDemand(usable []pipeline.Sample, t int64) float64 {
	if v, ok := naiveAt(usable, t); ok {
		return v
	}
	if n := len(usable); n > 0 && t >= usable[n-1].T {
		return usable[n-1].V
	}
	return 0
}

// Lifetimes and weights.

func naiveActive(i pipeline.Instance, t int64) bool {
	return i.Start <= t && (i.End == 0 || t < i.End)
}

func naiveCurve(age, timeout, shape float64) float64 {
	if age >= timeout {
		return 1
	}
	if shape == 0 {
		return age / timeout
	}
	return (math.Exp(shape*age/timeout) - 1) / (math.Exp(shape) - 1)
}

func naiveWeight(p pipeline.Params, all []pipeline.Instance, i pipeline.Instance, t int64) float64 {
	predecessor := false
	for _, j := range all {
		if j.Start < i.Start && naiveActive(j, i.Start) {
			predecessor = true
		}
	}
	if !predecessor {
		return 1
	}
	return naiveCurve(float64(t-i.Start), naiveMillis(p.RedistributionTimeout), p.RedistributionShape)
}

// naiveRun is the whole of it.
func naiveRun(p pipeline.Params, in pipeline.Input) (*naiveResult, error) {
	step := p.Interval.Milliseconds()
	r := &naiveResult{at: map[int64]*naiveTick{}}
	inRange := func(v float64) bool { return p.Model.Kind != pipeline.Quadratic || v >= 0 }

	instances := slices.Clone(in.Instances)
	sort.Slice(instances, func(i, j int) bool { return instances[i].ID < instances[j].ID })
	usable := map[string][]pipeline.Sample{}
	for _, i := range instances {
		if _, twice := usable[i.ID]; twice {
			return nil, fmt.Errorf("instance %q twice", i.ID)
		}
		u, dropped := naiveUsable(i.Samples, inRange, in.Now, step)
		usable[i.ID] = u
		r.dropped += dropped
	}
	demand, dropped := naiveUsable(in.Demand, func(float64) bool { return true }, in.Now, step)
	r.dropped += dropped

	// The window's ticks: now − W < t ≤ now, on the grid, not before Since.
	var window []int64
	for t := in.Now - p.Window.Milliseconds() + 1; t <= in.Now; t++ {
		if t%step == 0 && (in.Since == 0 || t >= in.Since) {
			window = append(window, t)
			t += step - 1
		}
	}
	value := map[int64]map[string]float64{} // v at t of the instances known then
	for _, t := range window {
		value[t] = map[string]float64{}
		for _, i := range instances {
			if v, ok := naiveAt(usable[i.ID], t); ok && naiveActive(i, t) {
				value[t][i.ID] = v
			}
		}
	}
	for _, t := range window {
		if len(value[t]) > 0 {
			r.last = t
		}
	}
	for _, t := range window {
		if len(r.ticks) == 0 && len(value[t]) == 0 || t > r.last {
			continue
		}
		r.ticks = append(r.ticks, t)
	}
	if len(r.ticks) == 0 {
		return nil, naiveNoData
	}
	if float64(in.Now-r.last) > naiveMillis(p.StaleAfter) {
		return nil, naiveStale
	}

	for n, t := range r.ticks {
		var before *naiveTick
		if n > 0 {
			before = r.at[t-step]
		}
		tick := &naiveTick{imputed: map[string]float64{}, weight: map[string]float64{}}
		r.at[t] = tick
		naiveImpute(tick, before, instances, value[t], t)
		tick.demand = naiveDemand(demand, t)
		naiveRedistribute(p, tick, before, instances, t)
		naivePredict(p, tick, before)
	}
	naiveDecide(p, in, instances, r)
	return r, nil
}

// naiveImpute is stage 2.
func naiveImpute(tick, before *naiveTick, instances []pipeline.Instance, value map[string]float64, t int64) {
	var known, star float64
	var missing []string
	for _, i := range instances {
		v, isKnown := value[i.ID]
		if before != nil {
			if prev, was := before.imputed[i.ID]; was && (isKnown || !naiveActive(i, t)) {
				star += prev
			}
		}
		switch {
		case isKnown:
			known += v
			tick.known++
			tick.imputed[i.ID] = v
		case naiveActive(i, t):
			missing = append(missing, i.ID)
		}
	}
	tick.sum = known
	tick.unknown = len(missing)
	unknown := 0.0
	if before != nil {
		unknown = math.Max(0, before.sum-star)
	}
	if len(missing) > 0 {
		tick.sum += unknown
	}
	for _, id := range missing {
		tick.imputed[id] = unknown / float64(len(missing))
	}
}

// naiveRedistribute is stage 3.
func naiveRedistribute(p pipeline.Params, tick, before *naiveTick, instances []pipeline.Instance, t int64) {
	for _, i := range instances {
		v, active := tick.imputed[i.ID]
		if !active {
			continue
		}
		w := naiveWeight(p, instances, i, t)
		tick.weight[i.ID] = w
		tick.raw += naiveLoad(p.Model, v)
		tick.weighted += w * naiveLoad(p.Model, v)
		if before != nil {
			if prev, was := before.imputed[i.ID]; was {
				tick.delta += (w - before.weight[i.ID]) * naiveLoad(p.Model, prev)
			}
		}
	}
	tick.absorbed = tick.weighted
	if before != nil && before.absorbed > tick.weighted {
		tick.absorbed = math.Min(tick.raw, before.absorbed)
	}
	if before != nil && before.absorbed > tick.weighted {
		tick.margins = append(tick.margins, margin{tick.absorbed - tick.weighted, tick.delta, true})
	} else if before != nil {
		tick.margins = append(tick.margins, margin{before.absorbed - tick.weighted, tick.delta, true})
	}
	if before == nil || tick.absorbed != tick.weighted {
		tick.delta = 0
	}
}

// naivePredict is stage 4.
func naivePredict(p pipeline.Params, tick, before *naiveTick) {
	input := tick.absorbed + tick.demand
	if before == nil {
		tick.level, tick.trend = input, 0
		return
	}
	forecast := before.level + before.trend + tick.delta
	alpha, beta := p.LevelDown, p.TrendDown
	if input > forecast {
		alpha, beta = p.LevelUp, p.TrendUp
	}
	tick.missed = input - forecast
	level := alpha*input + (1-alpha)*forecast
	trend := beta*(level-before.level-tick.delta) + (1-beta)*before.trend
	tick.margins = append(tick.margins,
		margin{input - forecast, trend, p.LevelUp == p.LevelDown},
		margin{level - input, trend, alpha == 1})
	if level > input {
		gap := level - input
		trend = trend * gap / (gap + math.Abs(trend) + 1e-9)
	}
	n := float64(tick.known + tick.unknown)
	if s := p.Saturation; s.Enabled {
		limit, top := n*naiveLoad(p.Model, s.Max*(1-s.Zone)), n*naiveLoad(p.Model, s.Max)
		clipped, growing := math.Min(level, top), math.Max(trend, before.trend)
		tick.margins = append(tick.margins,
			margin{tick.raw - limit, math.Abs(level-clipped) + math.Abs(trend-growing), false})
		if tick.raw >= limit {
			level, trend = clipped, growing
		}
	}
	tick.level, tick.trend = level, trend
}

// naiveDecide is stage 5.
func naiveDecide(p pipeline.Params, in pipeline.Input, instances []pipeline.Instance, r *naiveResult) {
	last := r.at[r.last]
	r.level, r.trend = last.level, last.trend
	r.active = len(last.imputed)
	for _, i := range instances {
		r.weight += last.weight[i.ID]
	}
	r.target = in.Target
	if r.target == 0 {
		r.target = r.active
	}
	if r.target < 1 {
		r.target = 1
	}

	timeout := p.StartupTime
	if in.StartupTime != 0 {
		timeout = in.StartupTime
	}
	h := p.HorizonMultiplier * float64(timeout)
	h = math.Max(h, float64(p.HorizonMin))
	h = math.Min(h, float64(p.HorizonMax))
	h += float64(p.ReactionDelay)
	r.horizon = time.Duration(h)
	lag := float64(in.Now-r.last) * 1e6
	deltaA := r.trend * (lag + h) / float64(p.Interval)
	r.total = math.Max(0, r.level+deltaA)

	n := r.weight
	if n == 0 {
		n = float64(r.active)
	}
	r.now = naiveProject(p.Model, r.level, n)
	r.ahead = naiveProject(p.Model, r.total, float64(r.target))

	gamma := 0.0
	if r.level > 0 {
		gamma = r.trend / r.level
	}
	gamma0 := math.Tan(p.TrendAngle * math.Pi / 180)
	r.direction = pipeline.Steady
	if gamma > gamma0 {
		r.direction = pipeline.Rising
	} else if gamma < -gamma0 {
		r.direction = pipeline.Falling
	}
	r.damped = r.total
	if deltaA > 0 && r.level > 0 {
		rho := deltaA / r.level
		r.damped = r.level + deltaA*p.RiskFactor/(p.RiskFactor+rho)
	}

	r.required = naiveRequired(p.Model, r.damped, p.Threshold)
	r.serve = p.Threshold * r.required
	switch tau := p.Threshold; {
	case r.direction == pipeline.Rising || r.ahead > tau:
		want := math.Ceil(r.required - 1e-9)
		if r.now < tau && r.required-(want-1) < p.Spillover {
			want--
		}
		upper := p.Max
		if p.MaxStep > 0 && r.target+p.MaxStep < upper {
			upper = r.target + p.MaxStep
		}
		r.desired = naiveClamp(want, r.target, upper)
	case r.ahead < tau && r.now < tau && !naivePending(p, in, r):
		want := math.Floor(naiveRequired(p.Model, r.level, tau/(1+p.ScaleDownMargin))+1e-9) + 1
		r.desired = naiveClamp(want, p.Min, r.target)
	default:
		r.desired = r.target
	}
	switch {
	case r.desired > r.target:
		r.action = pipeline.ScaleUp
	case r.desired < r.target:
		r.action = pipeline.ScaleDown
	default:
		r.action = pipeline.Hold
	}
}

func naivePending(p pipeline.Params, in pipeline.Input, r *naiveResult) bool {
	return r.target > r.active && in.TargetRose != pipeline.Never &&
		float64(in.Now-in.TargetRose) < naiveMillis(p.PendingExpiry)
}

func naiveMillis(d time.Duration) float64 { return float64(d) / 1e6 }

// naiveClamp bounds x; where the bounds cross, the lower bound wins.
func naiveClamp(x float64, lower, upper int) int {
	if x > float64(upper) {
		x = float64(upper)
	}
	if x < float64(lower) {
		x = float64(lower)
	}
	return int(x)
}

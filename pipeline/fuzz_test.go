package pipeline_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/pipeline"
)

// fuzzParams are parameters as bytes: every field of fixed size, durations in ns.
type fuzzParams struct {
	Model, Saturated, Method                             uint8
	Threshold, Baseline                                  float64
	Min, Max, MaxStep                                    int32
	Interval, Window, StaleAfter                         int64
	RedistributionTimeout, StartupTime                   int64
	HorizonMin, HorizonMax, ReactionDelay, PendingExpiry int64
	RedistributionShape                                  float64
	LevelUp, LevelDown, TrendUp, TrendDown               float64
	SaturationMax, SaturationZone                        float64
	HorizonMultiplier, TrendAngle, RiskFactor            float64
	ScaleDownMargin, Spillover, NoiseMargin              float64
}

var fuzzModels = []pipeline.ModelKind{"", pipeline.Linear, pipeline.Overhead, pipeline.Quadratic, "Cubic"}

var fuzzMethods = []pipeline.Method{"", pipeline.Holt, pipeline.Adaptive, "holt"}

func encodeParams(p pipeline.Params) fuzzParams {
	e := fuzzParams{
		Threshold: p.Threshold, Baseline: p.Model.Baseline, Min: int32(p.Min), Max: int32(p.Max), MaxStep: int32(p.MaxStep),
		Interval: int64(p.Interval), Window: int64(p.Window), StaleAfter: int64(p.StaleAfter),
		RedistributionTimeout: int64(p.RedistributionTimeout), StartupTime: int64(p.StartupTime),
		HorizonMin: int64(p.HorizonMin), HorizonMax: int64(p.HorizonMax), ReactionDelay: int64(p.ReactionDelay),
		PendingExpiry:       int64(p.PendingExpiry),
		RedistributionShape: p.RedistributionShape,
		LevelUp:             p.LevelUp, LevelDown: p.LevelDown, TrendUp: p.TrendUp, TrendDown: p.TrendDown,
		SaturationMax: p.Saturation.Max, SaturationZone: p.Saturation.Zone,
		HorizonMultiplier: p.HorizonMultiplier, TrendAngle: p.TrendAngle, RiskFactor: p.RiskFactor,
		ScaleDownMargin: p.ScaleDownMargin, Spillover: p.Spillover, NoiseMargin: p.NoiseMargin,
	}
	e.Method = uint8(max(0, slices.Index(fuzzMethods, p.Method)))
	for i, kind := range fuzzModels {
		if kind == p.Model.Kind {
			e.Model = uint8(i)
		}
	}
	if p.Saturation.Enabled {
		e.Saturated = 1
	}
	return e
}

func (e fuzzParams) decode() pipeline.Params {
	return pipeline.Params{
		Method:    fuzzMethods[int(e.Method)%len(fuzzMethods)],
		Model:     pipeline.Model{Kind: fuzzModels[int(e.Model)%len(fuzzModels)], Baseline: e.Baseline},
		Threshold: e.Threshold, Min: int(e.Min), Max: int(e.Max), MaxStep: int(e.MaxStep),
		Interval: time.Duration(e.Interval), Window: time.Duration(e.Window), StaleAfter: time.Duration(e.StaleAfter),
		RedistributionTimeout: time.Duration(e.RedistributionTimeout), StartupTime: time.Duration(e.StartupTime),
		HorizonMin: time.Duration(e.HorizonMin), HorizonMax: time.Duration(e.HorizonMax),
		ReactionDelay: time.Duration(e.ReactionDelay), PendingExpiry: time.Duration(e.PendingExpiry),
		RedistributionShape: e.RedistributionShape,
		LevelUp:             e.LevelUp, LevelDown: e.LevelDown, TrendUp: e.TrendUp, TrendDown: e.TrendDown,
		Saturation:        pipeline.Saturation{Enabled: e.Saturated&1 == 1, Max: e.SaturationMax, Zone: e.SaturationZone},
		HorizonMultiplier: e.HorizonMultiplier, TrendAngle: e.TrendAngle, RiskFactor: e.RiskFactor,
		ScaleDownMargin: e.ScaleDownMargin, Spillover: e.Spillover, NoiseMargin: e.NoiseMargin,
	}
}

// fuzzInput is the head of an input as bytes. Records follow it until the bytes end: each an instance, or a sample of
// the instance before it (of the demand, before the first instance).
type fuzzInput struct {
	Now, Since, TargetRose, StartupTime int64
	Target                              int32
}

type fuzzRecord struct {
	Kind uint8 // odd: an instance; even: a sample
	T    int64 // start, or the time of the sample
	End  int64
	V    float64
}

func encode(p pipeline.Params, in pipeline.Input) []byte {
	data := appendTo(nil, encodeParams(p))
	data = appendTo(data, fuzzInput{in.Now, in.Since, in.TargetRose, int64(in.StartupTime), int32(in.Target)})
	samples := func(of []pipeline.Sample) {
		for _, s := range of {
			data = appendTo(data, fuzzRecord{T: s.T, V: s.V})
		}
	}
	samples(in.Demand)
	for _, i := range in.Instances {
		data = appendTo(data, fuzzRecord{Kind: 1, T: i.Start, End: i.End})
		samples(i.Samples)
	}
	return data
}

// appendTo appends one value of fixed size.
func appendTo(data []byte, value any) []byte {
	data, err := binary.Append(data, binary.LittleEndian, value)
	if err != nil {
		panic(err)
	}
	return data
}

// take decodes one value of fixed size from the head of data; false where there is too little left.
func take(data *[]byte, value any) bool {
	n, err := binary.Decode(*data, binary.LittleEndian, value)
	*data = (*data)[n:]
	return err == nil
}

func decode(data []byte) (pipeline.Params, pipeline.Input, bool) {
	var params fuzzParams
	var head fuzzInput
	if !take(&data, &params) || !take(&data, &head) {
		return pipeline.Params{}, pipeline.Input{}, false
	}
	in := pipeline.Input{
		Now: head.Now, Since: head.Since, TargetRose: head.TargetRose,
		StartupTime: time.Duration(head.StartupTime), Target: int(head.Target),
	}
	samples := &in.Demand
	for record := (fuzzRecord{}); take(&data, &record); {
		if record.Kind%2 == 0 {
			*samples = append(*samples, pipeline.Sample{T: record.T, V: record.V})
			continue
		}
		in.Instances = append(in.Instances,
			pipeline.Instance{ID: fmt.Sprint(len(in.Instances)), Start: record.T, End: record.End})
		samples = &in.Instances[len(in.Instances)-1].Samples
	}
	return params.decode(), in, true
}

// FuzzRun runs any input under any valid parameters: no panic, and a forecast is of finite numbers within their bounds.
func FuzzRun(f *testing.F) {
	for seed, found := uint64(0), 0; found < 12; seed++ {
		r := newFleets(seed)
		params := r.params()
		params.Method = methods[found%len(methods)]
		if data := encode(params, r.input(params)); len(data) < 2500 { // small ones can be varied quickly
			f.Add(data)
			found++
		}
	}
	f.Add(encode(following(), trending(4, 3, 2)))
	f.Add(encode(figureParams(), at(6000, scaleUp()...)))
	f.Add(encode(defaults(), at(6000, table4()...)))
	huge := trending(2, math.MaxFloat64/2, 1)
	f.Add(encode(defaults(), huge))
	f.Add(encode(adaptive(), huge))
	f.Add(encode(clipping(), at(60_000, constants(1, 1)...)))
	f.Add(encode(defaults(), at(math.MaxInt64,
		pipeline.Instance{Start: math.MinInt64, End: math.MaxInt64,
			Samples: []pipeline.Sample{{T: math.MinInt64, V: 1}, {T: math.MaxInt64, V: 2}}})))

	f.Fuzz(func(t *testing.T, data []byte) {
		params, in, ok := decode(data)
		if !ok {
			return
		}
		p, err := pipeline.New(params)
		if err != nil || params.Window/params.Interval > 1000 {
			return // long windows are only slow
		}
		before := fmt.Sprint(in)
		got, err := p.Run(in)
		require.Equal(t, before, fmt.Sprint(in), "the input is modified")
		if err != nil {
			require.Zero(t, got)
			return
		}
		checkForecast(t, params, in, got)
		again, err := p.Run(in)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

// checkForecast checks what holds of every forecast.
func checkForecast(t *testing.T, params pipeline.Params, in pipeline.Input, f pipeline.Forecast) {
	t.Helper()
	for name, x := range map[string]float64{
		"level": f.Level, "error": f.Error, "trend": f.Trend, "total": f.Total, "damped": f.PlannedLoad, "weight": f.Weight,
		"load now": f.LoadNow, "load predicted": f.LoadPredicted, "required": f.Required, "serve": f.ServedLoad,
	} {
		require.False(t, math.IsNaN(x) || math.IsInf(x, 0), "%s: %v", name, x)
	}
	require.GreaterOrEqual(t, f.Total, 0.0)
	if params.Method == pipeline.Adaptive {
		require.GreaterOrEqual(t, f.Error, 0.0)
		require.GreaterOrEqual(t, f.PlannedLoad, max(f.Total, f.Level))
	} else {
		require.LessOrEqual(t, f.PlannedLoad, max(f.Total, f.Level)*(1+1e-12))
	}
	require.GreaterOrEqual(t, f.Weight, 0.0)
	require.LessOrEqual(t, f.Weight, float64(f.Active))
	require.True(t, 1 <= f.Active && f.Active <= len(in.Instances), "%d active of %d", f.Active, len(in.Instances))
	require.GreaterOrEqual(t, f.Target, 1)
	require.GreaterOrEqual(t, float64(f.Horizon), float64(params.HorizonMin)*(1-1e-12))

	require.Equal(t, in.Now, f.Now)
	require.Zero(t, f.Tick%params.Interval.Milliseconds())
	require.LessOrEqual(t, f.Tick, f.Now)
	require.LessOrEqual(t, time.Duration(f.Now-f.Tick)*time.Millisecond, min(params.Window, params.StaleAfter))

	d := f.Decision
	switch d.Action {
	case pipeline.ScaleUp:
		require.Greater(t, d.Desired, f.Target)
		require.LessOrEqual(t, d.Desired, params.Max)
		if params.MaxStep > 0 && d.Desired > f.Target+params.MaxStep {
			require.Equal(t, params.Min, d.Desired)
		}
	case pipeline.ScaleDown:
		require.Less(t, d.Desired, f.Target)
		require.GreaterOrEqual(t, d.Desired, params.Min)
		if params.Method != pipeline.Adaptive { // which may find too many even for a load that rises
			require.NotEqual(t, pipeline.Rising, d.Direction)
		}
	default:
		require.Equal(t, pipeline.Hold, d.Action)
		require.Equal(t, f.Target, d.Desired)
	}
}

// FuzzParams makes a pipeline of any parameters: they are refused with field errors, or good for an ordinary run.
func FuzzParams(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(appendTo(nil, encodeParams(newFleets(seed).params())))
	}
	f.Add(appendTo(nil, encodeParams(defaults())))
	f.Add(appendTo(nil, encodeParams(adaptive())))
	f.Add(appendTo(nil, encodeParams(pipeline.Params{})))
	f.Fuzz(func(t *testing.T, data []byte) {
		var encoded fuzzParams
		if !take(&data, &encoded) {
			return
		}
		params := encoded.decode()
		p, err := pipeline.New(params)
		if err != nil {
			require.Nil(t, p)
			for _, field := range fieldErrors(t, err) {
				require.NotEmpty(t, field.Field)
				require.NotEmpty(t, field.Accept)
			}
			return
		}
		step := params.Interval.Milliseconds()
		in := at(3 * step)
		for i, start := range []int64{-1000 * step, -step, step} {
			in.Instances = append(in.Instances, pipeline.Instance{ID: fmt.Sprint(i), Start: start, Samples: []pipeline.Sample{
				{T: -step, V: 0.1}, {T: 0, V: 0.3}, {T: step, V: 0.5}, {T: 2 * step, V: 0.8}, {T: 3 * step, V: 0.9},
			}})
		}
		got, err := p.Run(in)
		if err != nil {
			require.ErrorIs(t, err, pipeline.ErrOverflow)
			return
		}
		checkForecast(t, params, in, got)
	})
}

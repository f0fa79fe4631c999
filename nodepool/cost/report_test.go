package cost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/prices"
)

var monday = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

var (
	small     = Kind{InstanceType: "t3.small", Market: fleet.Spot}
	smallFull = Kind{InstanceType: "t3.small", Market: fleet.OnDemand}
)

// usd returns round prices: a quarter dollar for a Spot hour, and one for an On-Demand hour.
func usd(t *testing.T) prices.Prices {
	t.Helper()
	p, err := prices.Parse([]byte("t3.small: {onDemand: 1, spot: 0.25}"))
	require.NoError(t, err)
	return p
}

// stretch is some hours of an unchanged pool.
type stretch struct {
	hours int
	Moment
}

// history returns consecutive stretches, followed by unknown hours.
func history(unknownHours int, stretches ...stretch) *History {
	h := &History{Pool: "workers", From: monday, Step: DefaultStep, Unknown: 12 * unknownHours}
	at := monday
	for _, s := range stretches {
		for range 12 * s.hours {
			at = at.Add(DefaultStep)
			s.At = at
			h.Moments = append(h.Moments, s.Moment)
		}
	}
	h.To = at.Add(time.Duration(unknownHours) * time.Hour)
	return h
}

// some returns a moment with Spot and On-Demand workers and a recommendation, between 1 and 10.
func some(spot, onDemand, recommended int) Moment {
	return Moment{Instances: map[Kind]int{small: spot, smallFull: onDemand}, Recommended: recommended, Min: 1, Max: 10}
}

func with(m Moment, change func(*Moment)) Moment {
	change(&m)
	return m
}

func TestUsageAndCost(t *testing.T) {
	r := Of(history(8,
		stretch{10, some(3, 1, 4)}, // as recommended
		stretch{10, some(3, 1, 2)}, // half of them idle
		stretch{4, some(2, 0, 14)}, // more than the maximum
		stretch{2, some(0, 0, 0)},  // none, and the minimum is 1
		stretch{4, some(1, 0, 0)},  // the minimum is not idle
		stretch{1, with(some(1, 0, 1), func(m *Moment) { m.Gone = 3 })},
	), usd(t))
	assert.Equal(t, 31.0, r.KnownHours)
	assert.Equal(t, 8.0, r.UnknownHours)
	assert.Equal(t, 40.0+40+8+0+4+1, r.WorkerHours)
	assert.Equal(t, 40.0+20+40+2+4+1, r.DesiredHours)
	assert.Equal(t, 20.0, r.IdleHours)
	assert.Equal(t, 32.0+2, r.ShortHours)
	assert.Equal(t, 3.0, r.GoneHours)
	assert.InDelta(t, 4.0, r.AtMaximumHours, 1e-9)
	assert.Equal(t, 4, r.MaxWorkers)
	assert.InDelta(t, 73.0/93, *r.SpotShare, 1e-9)
	assert.Nil(t, r.SpotTarget, "no metric has it")
	assert.Nil(t, r.PendingHours)
	require.Len(t, r.Usage, 2)
	assert.Equal(t, small.Market, r.Usage[0].Market)
	assert.InDelta(t, 73.0/4, *r.Usage[0].CostUSD, 1e-9)
	assert.InDelta(t, 20.0, *r.Usage[1].CostUSD, 1e-9)

	all := 73.0/4 + 20
	require.NotNil(t, r.Cost)
	assert.InDelta(t, all, r.Cost.USD, 1e-9)
	each := (0.75 + 1) / 4 // per worker in the first twenty hours
	assert.InDelta(t, 40*each+20*each+40*0.25+2*all/93+4*0.25+0.25, r.Cost.DesiredUSD, 1e-9)
	assert.InDelta(t, 20*each, r.Cost.IdleUSD, 1e-9)
	assert.InDelta(t, 93.0, *r.OnDemandCostUSD, 1e-9)
}

func TestUnknownIsNotZero(t *testing.T) {
	h := history(1, stretch{2, some(1, 1, 2)})
	for name, c := range map[string]struct {
		prices  string
		missing []string
		spot    any
	}{
		"no prices":      {"", []string{"t3.small OnDemand", "t3.small Spot"}, nil},
		"of another":     {"m5.large: {onDemand: 1, spot: 1}", []string{"t3.small OnDemand", "t3.small Spot"}, nil},
		"of one market":  {"t3.small: {spot: 0.25}", []string{"t3.small OnDemand"}, 0.5},
		"nothing is nil": {"t3.small: {spot: 0, onDemand: 0}", []string{}, 0.0},
	} {
		var p prices.Prices
		if c.prices != "" {
			var err error
			p, err = prices.Parse([]byte(c.prices))
			require.NoError(t, err, name)
		}
		r := Of(h, p)
		assert.Equal(t, c.missing, r.MissingPrices, name)
		assert.Equal(t, len(c.missing) > 0, r.Cost == nil, name)
		for _, u := range r.Usage {
			if u.Market != fleet.Spot {
				continue
			}
			if c.spot == nil {
				assert.Nil(t, u.CostUSD, name)
			} else {
				assert.Equal(t, c.spot, *u.CostUSD, name)
			}
		}
	}
	none := Of(history(0, stretch{1, with(some(0, 0, 0), func(m *Moment) { m.Min = 0 })}), nil)
	assert.Nil(t, none.SpotShare)
	assert.Nil(t, none.Cost)
	assert.Contains(t, Summary(none), "There were no workers")
}

func TestAdvice(t *testing.T) {
	load := func(m Moment, of map[string]float64) Moment { m.Load = of; return m }
	recommended := func(m Moment, recommendations, pending int) Moment {
		m.BySignals, m.Pending = new(recommendations), new(pending)
		return m
	}
	target := func(m Moment, n int) Moment { m.SpotTarget = new(n); return m }
	quiet := stretch{48, some(3, 1, 4)}
	for name, c := range map[string]struct {
		history   *History
		decisions map[string]float64
		events    map[string]float64
		want      []string // the rule and a part of the text of each
	}{
		"nothing":        {history: history(0, quiet)},
		"a little above": {history: history(0, stretch{98, some(10, 0, 10)}, stretch{2, some(10, 0, 20)})},
		"above the maximum": {
			history: history(0, stretch{80, some(10, 0, 10)}, stretch{16, some(10, 0, 13)}, stretch{4, some(10, 0, 90)}),
			want: []string{
				"RaiseMaximum raise spec.max, which is 10: 20% of the time (20 h) more were recommended; " +
					"13 would have been enough for 95% of it",
			},
		},
		"the minimum is too high": {
			history: history(0, stretch{48, recommended(with(some(4, 0, 4), func(m *Moment) { m.Min = 4 }), 2, 0)}),
			want: []string{
				"LowerMinimum lower spec.min, which is 4, unless it has other reasons than load: " +
					"for 95% of the time signals and pending pods needed no more than 2; it would save up to 96 worker hours",
			},
		},
		"pods need the minimum": {
			history: history(0, stretch{48, recommended(with(some(4, 0, 4), func(m *Moment) { m.Min = 4 }), 2, 1)}),
		},
		"signals need it": {
			history: history(0, stretch{48, recommended(with(some(4, 0, 4), func(m *Moment) { m.Min = 4 }), 4, 0)}),
		},
		"signals are unknown": {history: history(0, stretch{48, with(some(4, 0, 4), func(m *Moment) { m.Min = 4 })})},
		"too slow for its cooldown": {
			history:   history(0, quiet, stretch{12, some(3, 1, 9)}),
			decisions: map[string]float64{"CoolingDown": 30, "ActionOpen": 10, "NothingToDo": 60},
			want: []string{
				"GrowFaster shorten cooldown.up: 20% of the time (12 h) there were fewer workers than desired, up to 5 fewer; " +
					"the most frequent cause was CoolingDown, 30% of all decisions",
			},
		},
		"too slow without a cause": {
			history: history(0, quiet, stretch{12, some(3, 1, 9)}),
			want:    []string{"GrowFaster raise maxBatchUp or shorten cooldown.up: 20% of the time"},
		},
		"idle": {
			history:   history(0, quiet, stretch{48, some(3, 1, 1)}),
			decisions: map[string]float64{"NoRemovableNode": 50, "NotIdle": 20, "NothingToDo": 30},
			want: []string{
				"ShrinkSooner find out what blocks nodes: see foresail explain workerpool: " +
					"38% of the worker hours (144 of 384) were beyond the desired count; " +
					"the most frequent cause was NoRemovableNode, 50%",
			},
		},
		"unused memory": {
			history: history(0, stretch{48, load(some(3, 1, 4), map[string]float64{"cpu": 0.6, "memory": 0.2})}),
			want: []string{
				"ChangeInstanceType use instance types with less memory for each CPU: on average cpu is 60% and memory is 20%",
			},
		},
		"too little memory, by requests": {
			history: history(
				0, stretch{48, load(some(3, 1, 4), map[string]float64{"requests/cpu": 0.2, "requests/memory": 0.7})},
			),
			want: []string{
				"ChangeInstanceType use instance types with more memory for each CPU: " +
					"on average requests/memory is 70% and requests/cpu is 20%",
			},
		},
		"balanced, with unbalanced requests": {
			history: history(
				0,
				stretch{
					48,
					load(some(3, 1, 4), map[string]float64{"cpu": 0.5, "memory": 0.4, "requests/cpu": 0.1, "requests/memory": 0.7}),
				},
			),
		},
		"rarely known": {
			history: history(0, quiet, stretch{40, load(some(3, 1, 4), map[string]float64{"cpu": 0.6, "memory": 0.2})}),
		},
		"no Spot capacity": {
			history: history(0, stretch{48, target(some(1, 3, 4), 3)}),
			events:  map[string]float64{"LaunchFailed": 12, "Interrupted": 4},
			want: []string{
				"MoreSpot 25% of the worker hours were Spot, and the market policy aims at 75%; 12 launches failed: " +
					"add instance types and subnets, or raise market.maxPrice; 4 instances were reclaimed",
			},
		},
		"On-Demand workers stay": {
			history: history(0, stretch{48, target(some(1, 3, 4), 3)}),
			want: []string{
				"MoreSpot 25% of the worker hours were Spot, and the market policy aims at 75%; no launch failed: " +
					"On-Demand workers stay",
			},
		},
	} {
		c.history.Decisions, c.history.Events = c.decisions, c.events
		r := Of(c.history, nil)
		assert.Empty(t, r.AdviceMissing, name)
		if !assert.Len(t, r.Advice, len(c.want), "%s: %v", name, r.Advice) {
			continue
		}
		for i, want := range c.want {
			assert.Contains(t, r.Advice[i].Rule+" "+r.Advice[i].Text, want, name)
		}
	}
}

func TestNoAdviceWithoutEnoughData(t *testing.T) {
	r := Of(history(140, stretch{23, some(10, 0, 40)}), nil)
	assert.Empty(t, r.Advice)
	var out strings.Builder
	require.NoError(t, Table(&out, r))
	assert.Contains(t, out.String(), "none yet: 23.0 h are known, and advice needs 24")
}

func TestTableAndSummaryAgree(t *testing.T) {
	h := history(8,
		stretch{120, with(some(3, 1, 4), func(m *Moment) { m.Pending, m.SpotTarget = new(0), new(2) })},
		stretch{40, with(some(3, 1, 2), func(m *Moment) { m.Pending = new(5) })},
	)
	const costs = "It cost 280.00 USD, and would have cost 245.00 USD at the desired count; " +
		"35.00 USD were for idle workers. On-Demand alone would have been 640.00 USD."
	r := Of(h, usd(t))
	var out strings.Builder
	require.NoError(t, Table(&out, r))
	assert.Equal(t, `WorkerPool workers, 2026-05-04T00:00:00Z to 2026-05-11T00:00:00Z
  known         160.0 h of 168.0 h; 8.0 h are unknown and in no figure
  workers       4.0 on average, at most 4, of 1 to 10
  worker hours  640.0; 560.0 desired
  idle          80.0 worker hours beyond the desired count
  short         0.0 worker hours desired and missing; more than the maximum recommended during 0.0 h
  gone          0.0 worker hours of workers that were terminating or failed, in no other figure
  pending       pods waited for a node during 40.0 h of 160.0 h
  spot          75% of the worker hours, and the market policy aims at 50%

INSTANCE TYPE  MARKET    HOURS  USD/HOUR  USD
t3.small       Spot      480.0  0.2500    120.00
t3.small       OnDemand  160.0  1.0000    160.00

`+costs+`

Advice
  none: no rule found a setting to improve
`, out.String())
	assert.Equal(t, "Worker pool workers, 2026-05-04 to 2026-05-11: "+
		"160.0 h of 168.0 h known; 8.0 h are unknown and in no figure. "+
		"640.0 worker hours, 560.0 desired, 80.0 idle. Spot: 75% of the worker hours, and the market policy aims at 50%.\n"+
		"It cost 280.00 USD, and would have cost 245.00 USD at the desired count; "+
		"35.00 USD were for idle workers. On-Demand alone would have been 640.00 USD.", Summary(r))

	r = Of(history(0, stretch{200, some(10, 0, 20)}), nil)
	assert.Contains(t, Summary(r), "\n• raise spec.max")
	assert.Contains(
		t, Summary(r), "Costs are unknown: there is no price of t3.small Spot. Prices are given as a YAML file",
	)
	assert.Error(t, Table(failing{}, r))
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, fmt.Errorf("full") }

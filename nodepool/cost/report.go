// Package cost reports what a pool of workers has used in past weeks and what that cost, what the desired workers alone
// would have cost, and which settings could be improved. It reads Foresail's own metrics from a Prometheus server; time
// without metrics is reported as unknown.
package cost

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/prices"
)

// Report is the report of one pool. Hours are worker hours unless marked as time. nil is unknown.
type Report struct {
	Pool         string    `json:"pool"`
	From         time.Time `json:"from"`
	To           time.Time `json:"to"`
	KnownHours   float64   `json:"knownHours"`   // of time, which the rest of the report covers
	UnknownHours float64   `json:"unknownHours"` // of time

	WorkerHours  float64  `json:"workerHours"`  // of workers that counted
	DesiredHours float64  `json:"desiredHours"` // within the limits
	IdleHours    float64  `json:"idleHours"`    // beyond the desired ones
	ShortHours   float64  `json:"shortHours"`   // desired and missing
	GoneHours    float64  `json:"goneHours"`    // of workers that were leaving or had failed; in no other figure
	SpotShare    *float64 `json:"spotShare"`    // of the worker hours
	SpotTarget   *float64 `json:"spotTarget"`   // share that the market policy aims at

	Min             int      `json:"min"` // at the end
	Max             int      `json:"max"`
	MaxWorkers      int      `json:"maxWorkers"`
	AtMaximumHours  float64  `json:"atMaximumHours"`  // of time with a recommendation above the maximum
	PendingHours    *float64 `json:"pendingHours"`    // of time with pending pods
	PendingOfHours  float64  `json:"pendingOfHours"`  // of time at which pending pods are known
	Usage           []Usage  `json:"usage"`           // most hours first
	MissingPrices   []string `json:"missingPrices"`   // of used kinds
	Cost            *Cost    `json:"cost"`            // nil unless all prices are known
	OnDemandCostUSD *float64 `json:"onDemandCostUSD"` // of the same hours as On-Demand
	Advice          []Advice `json:"advice"`
	// AdviceMissing is why no rule was applied, "" if they were.
	AdviceMissing string `json:"adviceMissing,omitempty"`
}

// Usage is the use of one kind of instance.
type Usage struct {
	InstanceType string       `json:"instanceType"`
	Market       fleet.Market `json:"market"`
	Hours        float64      `json:"hours"`
	PriceUSD     *float64     `json:"priceUSD"` // an hour
	CostUSD      *float64     `json:"costUSD"`
}

// Cost is in US dollars, of the known hours.
type Cost struct {
	USD        float64 `json:"usd"`
	DesiredUSD float64 `json:"desiredUSD"` // of the desired hours, at the mean price of the workers at each time
	IdleUSD    float64 `json:"idleUSD"`    // of the idle hours
}

// Of returns the report of a history with at least one known moment.
func Of(h *History, usd prices.Prices) *Report {
	step := h.Step.Hours()
	r := &Report{
		Pool: h.Pool, From: h.From, To: h.To,
		KnownHours: float64(len(h.Moments)) * step, UnknownHours: float64(h.Unknown) * step,
		Usage: []Usage{}, MissingPrices: []string{},
	}
	for i := range h.Moments {
		r.add(&h.Moments[i])
	}
	for _, steps := range []*float64{
		&r.WorkerHours, &r.DesiredHours, &r.IdleHours, &r.ShortHours, &r.GoneHours,
		&r.AtMaximumHours, &r.PendingOfHours, r.PendingHours,
	} {
		if steps != nil {
			*steps *= step
		}
	}
	r.spot(h)
	r.price(h, usd)
	r.Advice, r.AdviceMissing = adviceOf(r, h)
	return r
}

// add adds a moment, in steps.
func (r *Report) add(m *Moment) {
	workers, needed := m.Workers(), m.Needed()
	r.WorkerHours += float64(workers)
	r.DesiredHours += float64(needed)
	r.IdleHours += float64(max(0, workers-needed))
	r.ShortHours += float64(max(0, needed-workers))
	r.GoneHours += float64(m.Gone)
	r.Min, r.Max, r.MaxWorkers = m.Min, m.Max, max(r.MaxWorkers, workers)
	if m.Recommended > m.Max {
		r.AtMaximumHours++
	}
	if m.Pending != nil {
		r.PendingOfHours++
		if r.PendingHours == nil {
			r.PendingHours = new(float64)
		}
		if *m.Pending > 0 {
			*r.PendingHours++
		}
	}
}

// spot sets the share of Spot, and the target where both are known.
func (r *Report) spot(h *History) {
	var spot, all, target, of int
	for i := range h.Moments {
		m := &h.Moments[i]
		for k, n := range m.Instances {
			all += n
			if k.Market == fleet.Spot {
				spot += n
			}
		}
		if m.SpotTarget != nil {
			target, of = target+*m.SpotTarget, of+m.Workers()
		}
	}
	if all > 0 {
		r.SpotShare = new(float64(spot) / float64(all))
	}
	if of > 0 {
		r.SpotTarget = new(float64(target) / float64(of))
	}
}

// price sets the usage of each kind, and its cost if prices are known.
func (r *Report) price(h *History, usd prices.Prices) {
	steps := map[Kind]int{}
	for i := range h.Moments {
		for k, n := range h.Moments[i].Instances {
			steps[k] += n
		}
	}
	onDemand := new(float64)
	for k, n := range steps {
		if n == 0 {
			continue
		}
		n := float64(n) * h.Step.Hours()
		price := usd[k.InstanceType].Of(k.Market)
		u := Usage{InstanceType: k.InstanceType, Market: k.Market, Hours: n, PriceUSD: price}
		if u.PriceUSD != nil {
			u.CostUSD = new(n * *u.PriceUSD)
		} else {
			r.MissingPrices = append(r.MissingPrices, k.InstanceType+" "+string(k.Market))
		}
		if full := usd[k.InstanceType].OnDemand; full != nil && onDemand != nil {
			*onDemand += n * *full
		} else {
			onDemand = nil
		}
		r.Usage = append(r.Usage, u)
	}
	slices.Sort(r.MissingPrices)
	slices.SortFunc(r.Usage, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(b.Hours, a.Hours),
			cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Market, b.Market))
	})
	if len(r.Usage) > 0 && len(r.MissingPrices) == 0 {
		r.Cost, r.OnDemandCostUSD = r.costOf(h, usd), onDemand
	}
}

// costOf sums the cost of all moments. Workers that were desired while none existed count at the mean price of all.
func (r *Report) costOf(h *History, usd prices.Prices) *Cost {
	c, step, unpriced := &Cost{}, h.Step.Hours(), 0.0
	for i := range h.Moments {
		m := &h.Moments[i]
		paid, workers := 0.0, m.Workers()
		for k, n := range m.Instances {
			if n > 0 {
				paid += float64(n) * *usd[k.InstanceType].Of(k.Market) * step
			}
		}
		c.USD += paid
		if workers == 0 {
			unpriced += float64(m.Needed()) * step
			continue
		}
		each := paid / float64(workers)
		c.DesiredUSD += each * float64(m.Needed())
		c.IdleUSD += each * float64(max(0, workers-m.Needed()))
	}
	c.DesiredUSD += unpriced * c.USD / r.WorkerHours
	return c
}

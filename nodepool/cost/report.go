// Package cost tells what a pool of workers has used in past weeks and what that cost, what it would have cost to have no
// more workers than were asked for, and what could be set better. It reads what Foresail's own metrics have told a
// Prometheus server; time of which they tell nothing is unknown, and told as such.
package cost

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/prices"
)

// Report is of one pool. Hours are those of one worker unless they are said to be of time. What is nil is not known.
type Report struct {
	Pool         string    `json:"pool"`
	From         time.Time `json:"from"`
	To           time.Time `json:"to"`
	KnownHours   float64   `json:"knownHours"`   // of time; the rest of the report is of these
	UnknownHours float64   `json:"unknownHours"` // of time

	WorkerHours  float64  `json:"workerHours"`  // that counted
	DesiredHours float64  `json:"desiredHours"` // that were asked for, within the limits
	IdleHours    float64  `json:"idleHours"`    // beyond these
	ShortHours   float64  `json:"shortHours"`   // asked for, within the limits, and not there
	GoneHours    float64  `json:"goneHours"`    // of workers that were leaving or had failed; they are in no other figure
	SpotShare    *float64 `json:"spotShare"`    // of the worker hours
	SpotTarget   *float64 `json:"spotTarget"`   // the share that the market policy aims at

	Min             int      `json:"min"` // as of late
	Max             int      `json:"max"`
	MostWorkers     int      `json:"mostWorkers"`
	AtMaximumHours  float64  `json:"atMaximumHours"`  // of time at which more were asked for than the maximum
	PendingHours    *float64 `json:"pendingHours"`    // of time at which pods were pending
	PendingOfHours  float64  `json:"pendingOfHours"`  // of time at which it is known whether any were
	Usage           []Usage  `json:"usage"`           // most hours first
	MissingPrices   []string `json:"missingPrices"`   // of what was used
	Cost            *Cost    `json:"cost"`            // nil unless all prices are known
	OnDemandCostUSD *float64 `json:"onDemandCostUSD"` // what the same hours would have cost On-Demand
	Advice          []Advice `json:"advice"`
	// AdviceMissing is why there is no advice, "" if there could have been.
	AdviceMissing string `json:"adviceMissing,omitempty"`
}

// Usage is what was used of one kind.
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
	DesiredUSD float64 `json:"desiredUSD"` // of the desired hours, at the mean price of the workers that there were at each time
	IdleUSD    float64 `json:"idleUSD"`    // of the idle hours
}

// Of reports a history that has something known.
func Of(h *History, usd prices.Prices) *Report {
	step := h.Step.Hours()
	r := &Report{
		Pool: h.Pool, From: h.From, To: h.To,
		KnownHours: float64(len(h.Moments)) * step, UnknownHours: float64(h.Unknown) * step,
		Usage: []Usage{}, MissingPrices: []string{}, Advice: []Advice{},
	}
	for i := range h.Moments {
		r.add(&h.Moments[i])
	}
	for _, steps := range []*float64{&r.WorkerHours, &r.DesiredHours, &r.IdleHours, &r.ShortHours, &r.GoneHours, &r.AtMaximumHours, &r.PendingOfHours, r.PendingHours} {
		if steps != nil {
			*steps *= step
		}
	}
	r.spot(h)
	r.price(h, usd)
	r.advise(h)
	return r
}

// add counts a moment, in steps.
func (r *Report) add(m *Moment) {
	workers, needed := m.Workers(), m.Needed()
	r.WorkerHours += float64(workers)
	r.DesiredHours += float64(needed)
	r.IdleHours += float64(max(0, workers-needed))
	r.ShortHours += float64(max(0, needed-workers))
	r.GoneHours += float64(m.Gone)
	r.Min, r.Max, r.MostWorkers = m.Min, m.Max, max(r.MostWorkers, workers)
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

// spot tells the share of Spot, and the one that was aimed at where both are known.
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

// price tells what was used of each kind, and what it cost as far as prices are known.
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
		u := Usage{InstanceType: k.InstanceType, Market: k.Market, Hours: n, PriceUSD: usd[k.InstanceType].Of(k.Market)}
		if u.PriceUSD != nil {
			u.CostUSD = new(n * *u.PriceUSD)
		} else {
			r.MissingPrices = append(r.MissingPrices, k.InstanceType+" "+string(k.Market))
		}
		if dear := usd[k.InstanceType].OnDemand; dear != nil && onDemand != nil {
			*onDemand += n * *dear
		} else {
			onDemand = nil
		}
		r.Usage = append(r.Usage, u)
	}
	slices.Sort(r.MissingPrices)
	slices.SortFunc(r.Usage, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(b.Hours, a.Hours), cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Market, b.Market))
	})
	if len(r.Usage) > 0 && len(r.MissingPrices) == 0 {
		r.Cost, r.OnDemandCostUSD = r.costOf(h, usd), onDemand
	}
}

// costOf adds up what each moment cost. Workers that were desired while there were none are taken at the mean price of all.
func (r *Report) costOf(h *History, usd prices.Prices) *Cost {
	c, step, unseen := &Cost{}, h.Step.Hours(), 0.0
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
			unseen += float64(m.Needed()) * step
			continue
		}
		each := paid / float64(workers)
		c.DesiredUSD += each * float64(m.Needed())
		c.IdleUSD += each * float64(max(0, workers-m.Needed()))
	}
	c.DesiredUSD += unseen * c.USD / r.WorkerHours
	return c
}

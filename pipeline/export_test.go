package pipeline

import (
	"slices"
	"time"
)

// Stages is what the last run has made of each tick from the first one known to the newest.
type Stages struct {
	First     int64       // the first tick (ms)
	Imputed   [][]float64 // v̂ by tick and instance in order of ID; meaningless where the instance is not active
	Effective []float64   // Ā and the external demand
	Raw       []float64   // Â
	Delta     []float64   // Δ
	Weight    []float64   // N^w
	Active    []int
}

// Stages returns the stages of the last run that succeeded.
func (p *Pipeline) Stages() Stages {
	w := &p.window
	s := Stages{First: w.tick(w.first)}
	for k, l := range p.loads {
		s.Imputed = append(s.Imputed, slices.Clone(w.row(w.first+k)))
		s.Effective = append(s.Effective, l.effective)
		s.Raw = append(s.Raw, l.raw)
		s.Delta = append(s.Delta, l.delta)
		s.Weight = append(s.Weight, l.weight)
		s.Active = append(s.Active, l.active)
	}
	return s
}

// Weight is w(a) under the parameters (paper, section 6.3).
func Weight(p Params, age time.Duration) float64 {
	return ramp{timeout: millis(p.RedistributionTimeout), shape: p.RedistributionShape}.at(millis(age))
}

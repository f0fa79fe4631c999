package pipeline

import "time"

// Stages is what the last run has made of each tick from the first one known to the newest.
type Stages struct {
	First     int64       // the first tick (ms)
	Imputed   [][]float64 // v̂ by tick and instance in order of ID; meaningless where the instance is not active
	Effective []float64   // Ā and the external demand
	Raw       []float64   // Â
	Delta     []float64   // Δ
	Missed    []float64   // the load without its forecast; 0 at the first tick
	Weight    []float64   // N^w
	Active    []int
}

// Stages returns the stages of the last run that succeeded.
func (p *Pipeline) Stages() Stages {
	w := &p.window
	s := Stages{First: w.tick(w.first), Missed: append([]float64{0}, p.Missed()...)}
	for k, l := range w.loads[w.first : w.last+1] {
		var row []float64
		for i := range w.series {
			row = append(row, w.values[i*w.n+w.first+k])
		}
		s.Imputed = append(s.Imputed, row)
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
	return p.ramp().at(millis(age))
}

package plan

// prepare computes the facts of a snapshot, and starts the decision with the parts that depend on
// no rule: messages of the cloud and repairs. Their instances count as leaving from the start.
func prepare(s Snapshot) (*facts, Decision) {
	s.Pool = s.Pool.defaulted()
	c := newCensus(s)
	m := interpret(c)
	c = c.with(m.notices(), m.cooling)
	r := repair(c)
	f := factsOf(c.with(r.notices, nil))

	d := Decision{
		At: f.Now, Step: Hold, Workers: len(f.staying), Desired: len(f.staying),
		Recommended: f.recommended.nodes(), Recommendations: f.recommended.ranked(), Demand: f.expected.history,
		IdleSince:  lasting(f.census, f.Record.IdleSince, f.idle.holds()),
		SpareSince: lasting(f.census, f.Record.SpareSince, isSpare(f)),
	}
	d.Interruptions, d.Advice, d.Deferred, d.Cooling = m.interruptions, m.advice, m.deferred, m.cooling
	d.Repairs, d.RepairHeld = r.begun, r.held
	return f, d
}

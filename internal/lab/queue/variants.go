package queue

// Variant is another model that would be as plausible.
type Variant struct {
	Name  string
	Model Model
}

// Variants returns the model as fitted and those that a ranking of scalers should survive: requests that wait their turn,
// pods that fail none before they time out, pods of one speed, and requests that take less or more work.
func Variants() []Variant {
	with := func(name string, change func(*Model)) Variant {
		m := Defaults()
		change(&m)
		return Variant{name, m}
	}
	return []Variant{
		with("fitted", func(*Model) {}),
		with("fifo", func(m *Model) { m.Jump = 0 }),
		with("no-early-failures", func(m *Model) { m.FailShare = 0 }),
		with("identical-pods", func(m *Model) { m.SpeedSigma = 0 }),
		with("service-6.8ms", func(m *Model) { m.Service = 6.8 }),
		with("service-8.4ms", func(m *Model) { m.Service = 8.4 }),
	}
}

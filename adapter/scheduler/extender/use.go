package extender

import "sync/atomic"

// use is an amount of CPU and memory.
type use struct {
	cpu    int64 // millicores
	memory int64 // bytes
}

func (u use) plus(other use) use { return use{u.cpu + other.cpu, u.memory + other.memory} }

func (u use) minus(other use) use { return use{u.cpu - other.cpu, u.memory - other.memory} }

// within raises negative amounts to 0 and caps them at most, where that is known.
func (u use) within(most use) use {
	u.cpu, u.memory = max(u.cpu, 0), max(u.memory, 0)
	if most.cpu > 0 {
		u.cpu = min(u.cpu, most.cpu)
	}
	if most.memory > 0 {
		u.memory = min(u.memory, most.memory)
	}
	return u
}

// tally is a use that several goroutines read and change.
type tally struct{ cpu, memory atomic.Int64 }

func (t *tally) add(u use) {
	t.cpu.Add(u.cpu)
	t.memory.Add(u.memory)
}

func (t *tally) set(u use) {
	t.cpu.Store(u.cpu)
	t.memory.Store(u.memory)
}

func (t *tally) load() use { return use{t.cpu.Load(), t.memory.Load()} }

package poolbench

import (
	"context"
	"maps"
	"slices"

	"github.com/foresail/foresail/nodepool/act"
	"github.com/foresail/foresail/nodepool/drain"
)

var (
	_ act.Drainer = (*play)(nil)
	_ act.Labeler = (*play)(nil)
)

// on runs do on a node, if it is there, and brings its labels and taints up to date. Objects that
// were given out stay as they are.
func (p *play) on(node string, do func(*machine)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.machines {
		if m.node != nil && m.node.Name == node {
			do(m)
		}
	}
	return nil
}

// Taint and the next six make it an act.Drainer.
func (p *play) Taint(_ context.Context, node, action string) error {
	return p.on(node, func(m *machine) { m.mark = action })
}

func (p *play) Cordon(_ context.Context, node string) error {
	return p.on(node, func(m *machine) {
		m.cordon = true
		m.node = m.node.DeepCopy()
		m.node.Spec.Unschedulable = true
	})
}

func (p *play) Restore(_ context.Context, node string) error {
	return p.on(node, func(m *machine) {
		m.mark, m.cordon = "", false
		m.node = m.node.DeepCopy()
		m.node.Spec.Unschedulable = false
	})
}

func (p *play) Attached(context.Context) (map[string][]string, error) { return nil, nil }

func (p *play) Arriving(context.Context) (bool, error) { return false, nil }

func (p *play) Blockers(context.Context, string) ([]string, error) { return nil, nil }

// Evict has all pods of a node leave. Their controller makes others at once.
func (p *play) Evict(_ context.Context, node string, _ drain.Limits) (progress drain.Progress, err error) {
	err = p.on(node, func(m *machine) {
		for _, d := range p.pods {
			if d.on != m {
				continue
			}
			progress.Remaining++
			if d.leaves.IsZero() {
				d.leaves = p.now().Add(podGrace)
				p.outcome.count(p, &p.outcome.evictions)
			}
		}
	})
	return progress, err
}

func (p *play) NodeOf(_ context.Context, providerID, _ string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.machines {
		if m.node != nil && m.node.Spec.ProviderID == providerID {
			return m.node.Name, nil
		}
	}
	return "", nil
}

func (p *play) DeleteNode(_ context.Context, node, _ string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.machines {
		if m.node != nil && m.node.Name == node {
			m.node = nil
		}
	}
	p.machines = slices.DeleteFunc(p.machines, func(m *machine) bool {
		return m.node == nil && !m.endedAt.IsZero() && p.now().Sub(m.endedAt) >= shutdown
	})
	return nil
}

// Label makes it an act.Labeler.
func (p *play) Label(_ context.Context, node string, labels map[string]string) error {
	return p.on(node, func(m *machine) {
		m.node = m.node.DeepCopy()
		maps.Copy(m.node.Labels, labels)
	})
}

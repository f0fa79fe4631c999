package scheduling

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// attachable is the prefix of the resources by which volumes count: one resource for each CSI driver.
const attachable = "attachable-volumes-csi-"

func volumesOf(driver string) corev1.ResourceName { return corev1.ResourceName(attachable + driver) }

// requests returns what a pod of the group requests, its own volumes included.
func (g *group) requests() corev1.ResourceList {
	out := cluster.Requests(g.pod)
	for driver, n := range g.attach {
		out[volumesOf(driver)] = quantity(n)
	}
	return out
}

// attachable sets how many more volumes can be attached to a node that exists. A driver without a known limit has
// none; on a node that joins it may have yet to come up, and will have that of other nodes of the type.
func (d dimensions) attachable(free, whole vector, n *cluster.Node, in *Input) {
	if !d.attach() {
		return
	}
	learned := map[string]int(nil)
	if launched, joins := in.Joining[n.Object.Name]; joins {
		learned = in.AttachLimits[launched.InstanceType]
	}
	d.limit(free, func(driver string) (int, bool) {
		limit, known := n.AttachLimits[driver]
		if !known {
			limit, known = learned[driver]
		}
		return limit, known
	})
	d.limit(whole, func(string) (int, bool) { return 0, false })
	for _, a := range n.Attached {
		if i, counts := d[volumesOf(a.Driver)]; counts {
			free[i]--
		}
	}
}

// attach reports whether volumes count.
func (d dimensions) attach() bool {
	for name := range d {
		if strings.HasPrefix(string(name), attachable) {
			return true
		}
	}
	return false
}

// limit sets the dimensions of a vector that count volumes.
func (d dimensions) limit(free vector, of func(driver string) (int, bool)) {
	for name, i := range d {
		driver, is := strings.CutPrefix(string(name), attachable)
		if !is {
			continue
		}
		free[i] = math.MaxInt32
		if limit, known := of(driver); known {
			free[i] = int64(limit)
		}
	}
}

// findDrivers numbers the drivers whose volumes the pods use.
func (p *packer) findDrivers() {
	p.drivers = map[string]int{}
	for _, g := range p.groups {
		for _, a := range g.shared {
			p.dimensions.number(volumesOf(a.Driver))
		}
	}
	for name, i := range p.dimensions {
		if driver, is := strings.CutPrefix(string(name), attachable); is {
			p.drivers[driver] = i
		}
	}
}

// attaches reports whether the volumes that a group shares with other pods can be attached to a node, as far as
// they are not.
func (p *packer) attaches(g *group, at *place) bool {
	if len(g.shared) == 0 {
		return true
	}
	needs := map[int]int64{}
	for _, a := range g.shared {
		if i, counts := p.drivers[a.Driver]; counts && !slices.Contains(at.attached, a) {
			needs[i]++
		}
	}
	for i, n := range needs {
		if at.free[i] < n {
			return false
		}
	}
	return true
}

// attach attaches the volumes that a group shares with others.
func (p *packer) attach(g *group, at *place) {
	for _, a := range g.shared {
		if slices.Contains(at.attached, a) {
			continue
		}
		at.attached = append(slices.Clip(at.attached), a)
		if i, counts := p.drivers[a.Driver]; counts {
			at.free[i]--
		}
	}
}

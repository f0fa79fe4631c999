package scheduling

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/nodepool/cluster"
)

// attachable is the prefix of the resources that count volumes: one resource for each CSI driver.
const attachable = "attachable-volumes-csi-"

func volumesOf(driver string) corev1.ResourceName { return corev1.ResourceName(attachable + driver) }

// limitVolumes sets the dimensions of a vector that count volumes. A driver without a known limit
// is unlimited.
func limitVolumes(d dimensions, free vector, limitOf func(driver string) (int, bool)) {
	for name, i := range d {
		driver, is := strings.CutPrefix(string(name), attachable)
		if !is {
			continue
		}
		free[i] = math.MaxInt32
		if limit, known := limitOf(driver); known {
			free[i] = int64(limit)
		}
	}
}

// limitAttached sets the number of volumes that can still be attached to an existing node. On a
// joining node a driver may have yet to start, and will have the limit of other nodes of the type.
func limitAttached(d dimensions, free, whole vector, n *cluster.Node, in *Input) {
	if !countVolumes(d) {
		return
	}
	learned := map[string]int(nil)
	if launched, joins := in.NewlyReady[n.Object.Name]; joins {
		learned = in.AttachLimits[launched.InstanceType]
	}
	limitVolumes(d, free, func(driver string) (int, bool) {
		limit, known := n.AttachLimits[driver]
		if !known {
			limit, known = learned[driver]
		}
		return limit, known
	})
	limitVolumes(d, whole, func(string) (int, bool) { return 0, false })
	for _, a := range n.Attached {
		if i, counts := d[volumesOf(a.Driver)]; counts {
			free[i]--
		}
	}
}

// countVolumes reports whether some dimension counts volumes.
func countVolumes(d dimensions) bool {
	for name := range d {
		if strings.HasPrefix(string(name), attachable) {
			return true
		}
	}
	return false
}

// drivers are the dimensions that count volumes, by CSI driver.
type drivers map[string]int

func driversOf(d dimensions) drivers {
	out := drivers{}
	for name, i := range d {
		if driver, is := strings.CutPrefix(string(name), attachable); is {
			out[driver] = i
		}
	}
	return out
}

// fit reports whether the shared volumes of pods are attached to a node, or can be.
func (d drivers) fit(shared, attached []cluster.Attachment, free vector) bool {
	if len(shared) == 0 {
		return true
	}
	needs := map[int]int64{}
	for _, a := range shared {
		if i, counts := d[a.Driver]; counts && !slices.Contains(attached, a) {
			needs[i]++
		}
	}
	for i, n := range needs {
		if free[i] < n {
			return false
		}
	}
	return true
}

// attach subtracts the slots of newly attached shared volumes, and returns the attached volumes
// with them.
func (d drivers) attach(shared, attached []cluster.Attachment, free vector) []cluster.Attachment {
	for _, a := range shared {
		if slices.Contains(attached, a) {
			continue
		}
		attached = append(slices.Clip(attached), a)
		if i, counts := d[a.Driver]; counts {
			free[i]--
		}
	}
	return attached
}

package scheduling

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Dimensions that every packing has.
const (
	cpu = iota
	memory
	slots
	plain // pods that request neither CPU nor memory
	firstOther
)

// vector is an amount of every dimension: CPU in millicores, others in units.
type vector []int64

// dimensions number the resources that pods request.
type dimensions map[corev1.ResourceName]int

func newDimensions() dimensions {
	return dimensions{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory, corev1.ResourcePods: slots}
}

func (d dimensions) add(requests corev1.ResourceList) {
	for name, quantity := range requests {
		if !quantity.IsZero() {
			d.number(name)
		}
	}
}

func (d dimensions) number(name corev1.ResourceName) {
	if _, ok := d[name]; !ok {
		d[name] = len(d) + firstOther - 3
	}
}

func (d dimensions) vector(list corev1.ResourceList) vector {
	v := make(vector, len(d)+firstOther-3)
	for name, quantity := range list {
		if i, ok := d[name]; ok {
			v[i] = amount(i, quantity)
		}
	}
	return v
}

// name returns the resource of a dimension.
func (d dimensions) name(i int) corev1.ResourceName {
	for name, at := range d {
		if at == i {
			return name
		}
	}
	return ""
}

func amount(dimension int, q resource.Quantity) int64 {
	if dimension == cpu {
		return q.MilliValue()
	}
	return q.Value()
}

// times returns how often a request fits.
func (v vector) times(request vector) int {
	n := int64(math.MaxInt32)
	for i, r := range request {
		if r > 0 {
			n = min(n, max(v[i], 0)/r)
		}
	}
	return int(n)
}

// take subtracts a request n times.
func (v vector) take(request vector, n int) {
	for i, r := range request {
		v[i] -= r * int64(n)
	}
}

// share returns the largest fraction of the whole over all dimensions.
func (v vector) share(whole vector) float64 {
	most := 0.0
	for i, r := range v {
		if r > 0 {
			most = max(most, float64(r)/float64(max(whole[i], 1)))
		}
	}
	return most
}

func quantity(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

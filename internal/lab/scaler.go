package lab

import "math/rand/v2"

// View is what a scaler can see of the world: no more than a cluster would show it. It is good until the scaler returns.
type View struct {
	Now      int64
	Pods     []*Pod // in order of creation, those that ended within the last ten minutes included
	Target   int    // the replicas asked for
	Rose     int64  // when Target last rose, -1 before it did
	Fell     int64  // when Target last fell, -1 before it did
	Min, Max int
}

// Scaler says how many pods there should be.
type Scaler interface {
	// Next is when the scaler looks next. It rises with every Decide.
	Next() int64
	// Decide looks at the world and returns the replicas wanted; v.Target leaves things as they are. What is beyond
	// v.Min and v.Max is cut off.
	Decide(v *View) int
}

// Random returns the generator of one of the parts of a run that chance has a say in. Parts that have streams of their own
// do not disturb each other, so that two scalers with one seed meet the same arrivals and pods.
func Random(seed uint64, stream string) *rand.Rand {
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(stream) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h))
}

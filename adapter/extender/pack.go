package extender

// pack says how good it is that a share u of a node is used, from 0 to 1, if nodes are to be packed up to the share
// target: the fuller the better up to it, the emptier the better beyond, and nothing above 1.
func pack(u, target float64) float64 {
	switch {
	case u <= target:
		return target + (1-target)*u/target
	case u <= 1:
		return target * (1 - u) / (1 - target)
	}
	return 0
}

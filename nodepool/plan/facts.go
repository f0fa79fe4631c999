package plan

// facts are what the rules of one decision share. Each is computed once, here, and never changed
// afterwards. Facts call no rule.
type facts struct {
	*census
	recommended recommendations
	expected    demand
	idle        idleness
}

func factsOf(c *census) *facts {
	f := &facts{census: c, recommended: recommend(c), idle: idlenessOf(c)}
	f.expected = observeDemand(c, f.recommended)
	f.recommended = append(f.recommended, f.expected.recommend()...)
	return f
}

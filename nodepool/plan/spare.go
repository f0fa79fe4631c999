package plan

import "fmt"

// spare returns the number of workers that may be removed, and what limits it. At least as many
// stay as the largest recommendation, and as each signal needs to keep the load below its threshold
// with the margin. Only ready workers carry load, so the latter counts these.
func spare(f *facts) (int, string) {
	n := len(f.staying)
	extra, why := n-f.Pool.Min, fmt.Sprintf("the minimum is %d", f.Pool.Min)
	for _, r := range f.recommended {
		if r.counts() && n-r.attainable() < extra {
			extra, why = n-r.attainable(), fmt.Sprintf("%d are recommended: %s", r.attainable(), r.Reason)
		}
	}
	if kept := f.expected.Keep; kept > f.expected.history.Needed && n-kept < extra {
		extra, why = n-kept, f.expected.returns(kept)
	}
	for _, s := range f.Signals {
		if !s.InformsOnly && f.ready-s.Fits < extra {
			extra = f.ready - s.Fits
			why = fmt.Sprintf("%s needs %d ready workers to stay below %.4g with the margin %.4g, and there are %d",
				s.Name, s.Fits, s.Threshold, s.Margin, f.ready)
		}
	}
	return extra, why
}

// isSpare reports whether fewer workers would be enough for a pool that consolidates. It returns
// false while something is unknown.
func isSpare(f *facts) bool {
	if !f.Pool.Consolidate || len(f.unknown) > 0 || f.Pending.any() {
		return false
	}
	n, _ := spare(f)
	return n > 0
}

// consolidates reports whether spare workers are removed before the pool is idle. A signal with its
// own threshold for removals must be below it.
func consolidates(c *census) bool {
	if !c.Pool.Consolidate {
		return false
	}
	for _, s := range c.Signals {
		if s.Down > 0 && !(s.Now < s.Down) {
			return false
		}
	}
	return true
}

// neededReady returns the number of ready workers that must stay during replacements. Unlike a
// permanent removal, a replacement needs no margin. Otherwise the nodes launched as replacements
// would be needed themselves.
func neededReady(f *facts) int {
	most := f.Pool.Min
	for _, s := range f.Signals {
		if !s.InformsOnly {
			most = max(most, s.Needs)
		}
	}
	for _, r := range f.recommended {
		if !r.signal && r.Known {
			most = max(most, r.attainable())
		}
	}
	return most
}

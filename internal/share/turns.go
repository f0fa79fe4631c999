package share

import (
	"cmp"
	"slices"
)

// Turns orders work so that tenants take turns, those first whose last turn was the longest ago. A
// tenant that comes counts as just served: those that wait already come first, however often others
// come and go. The zero value is ready. It is not safe for concurrent use.
type Turns struct {
	n    uint64
	last map[string]uint64 // when each had its last turn, or came
}

// Take records that a tenant has had a turn.
func (t *Turns) Take(tenant string) {
	t.n++
	if t.last == nil {
		t.last = map[string]uint64{}
	}
	t.last[tenant] = t.n
}

// Order sorts items so that tenants take turns: the first item of each, then the second of each,
// and so on. The items of one tenant stay in their order. Turns of tenants without items are
// forgotten.
func Order[T any](t *Turns, items []T, tenant func(T) string) {
	type place struct {
		item  T
		round int
		last  uint64
	}
	rounds := map[string]int{}
	places := make([]place, len(items))
	for i, item := range items {
		of := tenant(item)
		if _, known := t.last[of]; !known {
			t.Take(of)
		}
		places[i] = place{item, rounds[of], t.last[of]}
		rounds[of]++
	}
	for of := range t.last {
		if rounds[of] == 0 {
			delete(t.last, of)
		}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.last, b.last))
	})
	for i := range places {
		items[i] = places[i].item
	}
}

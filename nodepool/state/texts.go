package state

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/foresail/foresail/internal/keepalive"
)

const (
	// maxText is how many bytes are kept of one text.
	maxText = 256
	// maxTexts is how many bytes are kept of all different texts together. Those beyond it are left out.
	maxTexts = 64 << 10
)

// Clone returns a copy that shares nothing with r that is ever changed.
func (r Record) Clone() Record {
	r.Interruptions, r.Repairs = slices.Clone(r.Interruptions), slices.Clone(r.Repairs)
	r.PendingTerminations, r.Cooling, r.Joins = slices.Clone(r.PendingTerminations), slices.Clone(r.Cooling), slices.Clone(r.Joins)
	r.Endings, r.Attempts, r.Demand = slices.Clone(r.Endings), slices.Clone(r.Attempts), r.Demand.Clone()
	r.DrainBackoff, r.FailedDrains = maps.Clone(r.DrainBackoff), maps.Clone(r.FailedDrains)
	r.Undone = slices.Clone(r.Undone)
	if r.Saved != nil {
		r.Saved = new(*r.Saved)
	}
	if r.Action != nil {
		a := *r.Action
		a.Slots, a.Targets = slices.Clone(a.Slots), slices.Clone(a.Targets)
		r.Action = &a
	}
	return r
}

// Slim returns the record without everything that no process needs to continue: its texts, and what was learned of
// placements, of launches that did not help, of the demand, and of the time that nodes take to join. It is for a store that refuses the whole record.
func (r Record) Slim() Record {
	r = r.Clone()
	r.eachText(func(text *string) { *text = "" })
	r.Cooling, r.Joins, r.Attempts, r.Demand, r.LaunchError = nil, nil, nil, keepalive.History{}, ""
	r.Saved, r.Undone = nil, nil
	return r
}

// eachText calls do with each text that only people read, the most important ones first.
func (r *Record) eachText(do func(*string)) {
	removals := [][]Removal{r.Interruptions, r.Repairs, r.Endings}
	if a := r.Action; a != nil {
		do(&a.Message)
		removals = append(removals, a.Targets)
	}
	for _, list := range removals {
		for i := range list {
			do(&list[i].Error)
		}
	}
	for i := range r.Cooling {
		do(&r.Cooling[i].Reason)
	}
	if r.Action == nil {
		return
	}
	for i := range r.Action.Slots {
		do(&r.Action.Slots[i].Error)
	}
}

// Shorten returns a text, or its beginning with an ellipsis if it has more bytes than most.
func Shorten(text string, most int) string {
	const ellipsis = "…"
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

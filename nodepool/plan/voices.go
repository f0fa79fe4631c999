package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// voice is a vote with what becomes of it.
type voice struct {
	Vote
	reason Reason // of a launch that it asks for
	signal bool
	waits  bool // it asks for more, and has not for long enough
	muted  bool // it asks alone where all must
}

// heard tells whether the voice may raise the number of workers.
func (v voice) heard() bool { return v.Known && !v.waits && !v.muted }

// listen asks every voice: signals, pending pods, the seasonal floor, and the minimum.
func (v *view) listen() []voice {
	voices := make([]voice, 0, len(v.Signals)+3)
	for _, s := range v.Signals {
		if !s.NoVote {
			voices = append(voices, v.signalVoice(s))
		}
	}
	voices = append(voices, v.pendingVoice())
	if v.Pool.Mode == All {
		joinVoices(voices, len(v.staying))
	}
	if v.Seasonal != nil {
		voices = append(voices, v.seasonalVoice())
	}
	return append(voices, voice{
		Vote:   Vote{Voice: "minimum", Nodes: v.Pool.Min, Known: true, Why: fmt.Sprintf("the minimum is %d", v.Pool.Min)},
		reason: BelowMinimum,
	})
}

func (v *view) signalVoice(s Signal) voice {
	out := voice{Vote: Vote{Voice: s.Name, Known: s.Known}, reason: LoadPredicted, signal: true}
	if !s.Known {
		out.Why = fmt.Sprintf("%s is not known: %s", s.Name, s.Err)
		return out
	}
	out.Nodes = max(0, s.Want)
	out.Why = fmt.Sprintf("%s is %.4g and will be %.4g in %s, with a threshold of %.4g", s.Name, s.Now, s.Predicted, s.Horizon.Truncate(time.Second), s.Threshold)
	if out.Nodes > len(v.staying) && s.For > 0 && (s.Since.IsZero() || left(s.Since, s.For, v.Now) > 0) {
		out.waits = true
		out.Why += fmt.Sprintf("; it asks for %d, and has not for %s", out.Nodes, s.For)
	}
	return out
}

// pendingVoice asks for the nodes that hold the pods which have been unschedulable for long enough, beyond the workers
// that there are (seed 000: desiredDelta = ceil(pendingPods / podsPerNode), where pods have no requests).
func (v *view) pendingVoice() voice {
	p := v.Pending
	out := voice{Vote: Vote{Voice: "pending", Known: p.Known}, reason: PodsPending}
	switch {
	case !p.Known:
		out.Why = "pods are not known"
		return out
	case p.Due > 0 && p.Nodes > 0:
		out.Nodes = add(len(v.staying), p.Nodes)
		out.Why = fmt.Sprintf("%s unschedulable for longer than %s, the oldest for %s, and %s would hold them",
			count(p.Due, "pod"), v.Pool.PendingFor, p.OldestFor.Truncate(time.Second), count(p.Nodes, "more node"))
	case p.Due > 0:
		out.Nodes = len(v.staying)
		out.Why = fmt.Sprintf("%s unschedulable for longer than %s, and %s", count(p.Due, "pod"), v.Pool.PendingFor, p.held())
	case p.Pods > 0:
		out.Nodes, out.waits = len(v.staying), true
		out.Why = fmt.Sprintf("%s unschedulable, none for longer than %s", count(p.Pods, "pod"), v.Pool.PendingFor)
	default:
		out.Why = "no pod is unschedulable"
	}
	if p.Refused > 0 {
		out.Why += fmt.Sprintf("; %d of them are refused the nodes that were there, as these are predicted to use too much", p.Refused)
	}
	if len(p.Unhelped) > 0 {
		out.Why += fmt.Sprintf("; %s could run on no node of the pool", count(len(p.Unhelped), "pod"))
	}
	return out
}

// held tells why the due pods need no new node.
func (p Pending) held() string {
	switch {
	case p.Room <= 0:
		return "nodes on their way will hold them"
	case p.Room >= p.Due:
		return "nodes that are there have room for them: their events tell what the scheduler has against these"
	}
	return fmt.Sprintf("nodes that are there have room for %d of them, and nodes on their way will hold the others", p.Room)
}

func (v *view) seasonalVoice() voice {
	s := v.Seasonal
	out := voice{Vote: Vote{Voice: "seasonal", Known: s.Known}, reason: SeasonalFloor}
	if !s.Known {
		out.Why = "past weeks are not known: " + s.Err
		return out
	}
	out.Nodes = max(0, s.Nodes)
	out.Why = fmt.Sprintf("past weeks needed %d at this hour, with a confidence of %.2f", out.Nodes, s.Confidence)
	return out
}

// joinVoices lets signals and pending pods be heard only if both ask; pending pods then say for how many (seed 003).
func joinVoices(voices []voice, workers int) {
	signals, pending := false, false
	for _, o := range voices {
		if o.heard() && o.Nodes > workers {
			signals, pending = signals || o.signal, pending || !o.signal
		}
	}
	for i := range voices {
		voices[i].muted = voices[i].signal || !signals || !pending
	}
}

// asked is the largest vote that is heard.
func (v *view) asked() int {
	asked := 0
	for _, o := range v.voices {
		if o.heard() {
			asked = max(asked, o.Nodes)
		}
	}
	return asked
}

// loudest is the voice that the number of workers is raised for, the first of several that ask for as many.
func (v *view) loudest() voice {
	var out voice
	for _, o := range v.voices {
		if o.heard() && o.Nodes > out.Nodes {
			out = o
		}
	}
	return out
}

// unheard says why a voice that asks for more is not heard; "" if there is none.
func (v *view) unheard() (Reason, string) {
	var waiting, alone *voice
	for i := range v.voices {
		o := &v.voices[i]
		asks := o.Known && (o.Nodes > len(v.staying) || o.waits)
		switch {
		case !asks:
		case o.waits && waiting == nil:
			waiting = o
		case o.muted && alone == nil:
			alone = o
		}
	}
	switch {
	case alone != nil:
		return NotAllAsk, "signals and pending pods must both ask, and only one does: " + alone.Why
	case waiting != nil:
		return NotSustained, waiting.Why
	}
	return "", ""
}

// votes are all votes, the largest first.
func (v *view) votes() []Vote {
	out := make([]Vote, len(v.voices))
	for i, o := range v.voices {
		out[i] = o.Vote
	}
	slices.SortStableFunc(out, func(a, b Vote) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return out
}

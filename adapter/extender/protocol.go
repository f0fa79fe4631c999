package extender

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/foresail/foresail/api/v1alpha1"
)

// maxScore is the best score of a node; the scheduler multiplies scores by the weight of the extender, and by ten.
const maxScore = extenderv1.MaxExtenderPriority

// refusal is what is said of a node that is refused. It is the same for all nodes of a reason: events are put together
// by their text. A WorkerPool takes RefusedForLoad to be said of every node that there is.
func (r room) refusal(found reason) string {
	switch {
	case found == removing:
		return v1alpha1.RefusedForRemoval
	case r == waits:
		return v1alpha1.RefusedForLoad
	}
	return v1alpha1.RefusedElsewhere
}

// appendFiltered appends an extenderv1.ExtenderFilterResult: every node asked about is in it, as one that the pod may go to
// or as one that it must not, and whose pods need not be preempted either.
func appendFiltered(b []byte, verdicts []verdict, r room) []byte {
	b = append(b, `{"Nodes":null,"NodeNames":[`...)
	refused, comma := 0, false
	for i := range verdicts {
		if r.refuses(&verdicts[i]) {
			refused++
			continue
		}
		b = appendComma(b, &comma)
		b = appendString(b, verdicts[i].name)
	}
	b = append(b, `],"FailedNodes":null,"FailedAndUnresolvableNodes":{`...)
	comma = false
	for i := range verdicts {
		if refused == 0 {
			break
		}
		if !r.refuses(&verdicts[i]) {
			continue
		}
		b = appendComma(b, &comma)
		b = appendString(b, verdicts[i].name)
		b = append(b, ':')
		b = appendString(b, r.refusal(verdicts[i].reason))
	}
	return append(b, `},"Error":""}`...)
}

// appendUnfiltered appends the extenderv1.ExtenderFilterResult that says why there is no answer.
func appendUnfiltered(b []byte, why error) []byte {
	b = append(b, `{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":`...)
	return append(appendString(b, why.Error()), '}')
}

// appendScores appends an extenderv1.HostPriorityList with a score for every node asked about.
func appendScores(b []byte, verdicts []verdict) []byte {
	b = append(b, '[')
	comma := false
	for i := range verdicts {
		b = appendComma(b, &comma)
		b = append(b, `{"Host":`...)
		b = appendString(b, verdicts[i].name)
		b = append(b, `,"Score":`...)
		b = strconv.AppendInt(b, int64(verdicts[i].score), 10)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendComma(b []byte, comma *bool) []byte {
	if *comma {
		b = append(b, ',')
	}
	*comma = true
	return b
}

// appendString appends a string as JSON. Names of nodes need no escapes.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // of a string it does not fail
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

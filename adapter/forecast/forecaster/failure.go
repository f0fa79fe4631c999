package forecaster

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foresail/foresail/adapter/forecast/podtracker"
	"github.com/foresail/foresail/adapter/source"
)

const (
	// confirmed is how many readings in a row must fail before a source counts as failing.
	confirmed = 2
	// settledAfter is the time that a pod must have been ready before its failures count, and that failures which may pass by
	// themselves must have lasted: a server may be restarting, and a pod collecting garbage.
	settledAfter = 10 * time.Second
	// newFor is the time for which a pod may not listen yet, as it is ready at once without a readiness probe, and a query may have
	// no result yet, as a server scrapes once a minute and a rate takes two scrapes.
	newFor = 2 * time.Minute
)

// failure returns why nothing can be read, or "" if a reading has succeeded or one may still succeed. The usual cause is a wrong metric,
// port, path or query, which waiting does not mend.
func (f *Feed) failure(now time.Time) string {
	if f.using.Params.Whole {
		if x := f.failing[source.WholeTarget]; x.times >= confirmed && now.Sub(x.since) >= lasting(x.err, 0) {
			return "the load of the target cannot be read: " + x.err.Error()
		}
		if f.sourceFails(now) && f.series[source.WholeTarget] == nil {
			return "the load of the target cannot be read: " + f.sourceErr.Error()
		}
		return ""
	}
	settled := f.unread(now)
	switch {
	case len(settled) == 0:
		return ""
	case f.sourceFails(now):
		return fmt.Sprintf("%s: %v", unreadable(len(settled)), f.sourceErr)
	}
	for _, x := range settled {
		reading := f.failing[x.ID]
		if reading.times < confirmed {
			return ""
		}
		if mayPass(reading.err) && (now.Sub(x.Start) < newFor || now.Sub(reading.since) < settledAfter) {
			return ""
		}
	}
	return fmt.Sprintf("%s: %s", unreadable(len(settled)), f.errorsOf(settled))
}

// mayPass reports whether an error may pass by itself while a target is new.
func mayPass(err error) bool {
	_, ok := errors.AsType[source.NotYet](err)
	return ok
}

// lasting returns how long an error must have lasted to count: newFor if it may pass by itself, else otherwise.
func lasting(err error, otherwise time.Duration) time.Duration {
	if mayPass(err) {
		return newFor
	}
	return otherwise
}

// sourceFails reports whether the source as a whole has failed for long enough. A source that is pushed to does not count: its sender may
// be slow.
func (f *Feed) sourceFails(now time.Time) bool {
	return f.sourceFailures >= confirmed && now.Sub(f.sourceFailed) >= lasting(f.sourceErr, settledAfter) && f.using.Interval > 0
}

// unread returns the active pods whose failures count; none if any active pod has been read.
func (f *Feed) unread(now time.Time) (settled []podtracker.Instance) {
	pods := f.pods.Load()
	if pods == nil {
		return nil
	}
	for _, x := range (*pods).Instances(now) {
		if !x.End.IsZero() {
			continue
		}
		if s := f.series[x.ID]; s != nil && s.Len() > 0 {
			return nil
		}
		if now.Sub(x.Start) >= settledAfter {
			settled = append(settled, x)
		}
	}
	return settled
}

func unreadable(pods int) string {
	if pods == 1 {
		return "the ready pod cannot be read"
	}
	return fmt.Sprintf("none of %d ready pods can be read", pods)
}

// shownErrors is how many different errors a message has.
const shownErrors = 3

// errorsOf returns the errors of some pods. Errors that differ in names and addresses of pods alone are listed once.
func (f *Feed) errorsOf(pods []podtracker.Instance) string {
	var texts []string
	seen := map[string]bool{}
	for i := range pods {
		err := f.failing[pods[i].ID].err
		if key := anonymous(err, &pods[i]); !seen[key] && len(texts) < shownErrors {
			seen[key] = true
			texts = append(texts, fmt.Sprintf("pod %s: %v", pods[i].Pod.Name, err))
		}
	}
	if len(texts) == 1 {
		return f.failing[pods[0].ID].err.Error()
	}
	return strings.Join(texts, "; ")
}

// anonymous returns an error without what differs from pod to pod.
func anonymous(err error, pod *podtracker.Instance) string {
	text := strings.ReplaceAll(err.Error(), pod.Pod.String(), "")
	text = strings.ReplaceAll(text, pod.Pod.Name, "")
	if pod.IP != "" {
		text = strings.ReplaceAll(text, pod.IP, "")
	}
	return text
}

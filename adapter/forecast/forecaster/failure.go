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
	// settledAfter is the time that a pod must have been ready before its failures count, and that
	// failures which may pass by themselves must have lasted: a server may be restarting, and a pod
	// collecting garbage.
	settledAfter = 10 * time.Second
	// newFor is the time for which a pod may not listen yet, as it is ready at once without a
	// readiness probe, and a query may have no result yet, as a server scrapes once a minute and a
	// rate takes two scrapes.
	newFor = 2 * time.Minute
)

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

func unreadable(pods int) string {
	if pods == 1 {
		return "the ready pod cannot be read"
	}
	return fmt.Sprintf("none of %d ready pods can be read", pods)
}

// shownErrors is how many different errors a message has.
const shownErrors = 3

// anonymous returns an error without what differs from pod to pod.
func anonymous(err error, pod *podtracker.Instance) string {
	text := strings.ReplaceAll(err.Error(), pod.Pod.String(), "")
	text = strings.ReplaceAll(text, pod.Pod.Name, "")
	if pod.IP != "" {
		text = strings.ReplaceAll(text, pod.IP, "")
	}
	return text
}

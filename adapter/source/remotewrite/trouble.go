package remotewrite

import (
	"fmt"
	"strings"
	"time"
)

// troubleAfter is how long a subscription with active pods may hear nothing before that is reported.
const troubleAfter = 30 * time.Second

// hear takes note that samples are taken.
func (u *subscription) hear(now time.Time) {
	u.heard = now
	if u.troubled {
		u.troubled = false
		u.sink.Trouble(nil)
	}
}

// listen reports if nothing has been heard for long. What came instead may be forgotten afterwards.
func (u *subscription) listen(now time.Time, forget bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if forget {
		defer u.other.clear()
	}
	if u.ended || u.roster == nil {
		return
	}
	if len(u.roster.Active()) == 0 {
		u.heard = now // nothing is to be expected
		return
	}
	if quiet := now.Sub(u.heard); quiet >= troubleAfter {
		u.troubled = true
		u.sink.Trouble(u.complaint(quiet))
	}
}

// complaint says what is expected and what came instead.
func (u *subscription) complaint(quiet time.Duration) error {
	var b strings.Builder
	fmt.Fprintf(&b, "no sample of %s has been pushed for a pod of the target for %s", &u.config, quiet.Round(time.Second))
	tell := func(e *example, what string) {
		if text := e.get(); text != "" {
			fmt.Fprintf(&b, "; %s, such as %s", what, text)
		}
	}
	tell(&u.other, "series of its pods came with other labels")
	tell(&u.keyed.strays.withoutPod, fmt.Sprintf("series came without the label %s", u.config.PodLabel))
	tell(&u.keyed.strays.ambiguous, "series came without a namespace, for pods whose name is in several")
	tell(&u.keyed.strays.unknownPod, "series came for other pods")
	return fmt.Errorf("%s", b.String())
}

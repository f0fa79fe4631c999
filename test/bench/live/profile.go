package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresail/foresail/test/env/loadgen"
)

// profile is a load that scalers are compared under.
type profile struct {
	name string
	load loadgen.Profile // what counts, in requests per second of the full load
	// recurs is after what time it comes again, as it did for a week before: what learns a load has
	// learned it. 0 = it never came before.
	recurs time.Duration
}

// lead is how long the first rate of a profile lasts before what counts begins.
const lead = time.Minute

// profiles are those of the paper, which called them ramp and spike, and the spike as a job brings
// it that runs each hour.
func profiles() []profile {
	return []profile{
		{name: "ramp", load: loadgen.Profile{
			{At: 0, RPS: 100}, {At: 30 * time.Second, RPS: 10}, {At: 180 * time.Second,
				RPS: 800}, {At: 270 * time.Second, RPS: 800},
		}},
		{name: "spike", load: loadgen.Profile{{At: 0, RPS: 0}, {At: 10 * time.Second, RPS: 800},
			{At: 130 * time.Second, RPS: 800}}},
		{name: "hourly", recurs: time.Hour, load: loadgen.Profile{
			{At: 0, RPS: 100}, {At: 120 * time.Second, RPS: 100}, {At: 130 * time.Second,
				RPS: 800}, {At: 250 * time.Second, RPS: 800},
			{At: 260 * time.Second, RPS: 100}, {At: 300 * time.Second, RPS: 100},
		}},
	}
}

// profilesNamed finds profiles by their names.
func profilesNamed(names []string) ([]profile, error) {
	return pick("profile", names, profiles(), func(p profile) string { return p.name })
}

// pick finds things by their names, in the order of the names.
func pick[T any](kind string, names []string, all []T, name func(T) string) ([]T, error) {
	var found []T
	for _, desired := range names {
		i := slices.IndexFunc(all, func(t T) bool { return name(t) == desired })
		if i < 0 {
			var known []string
			for _, t := range all {
				known = append(known, name(t))
			}
			return nil, fmt.Errorf("%s: %q: must be one of %s", kind, desired, strings.Join(known, ", "))
		}
		found = append(found, all[i])
	}
	return found, nil
}

// divided returns the profile with its rates divided.
func (p profile) divided(by float64) profile {
	p.load = slices.Clone(p.load)
	for i := range p.load {
		p.load[i].RPS /= by
	}
	return p
}

// shortened returns the profile with its time divided, for a run that only shows that everything works.
func (p profile) shortened(by int) profile {
	p.load = slices.Clone(p.load)
	for i := range p.load {
		p.load[i].At /= time.Duration(by)
	}
	return p
}

// first is the rate at the beginning.
func (p profile) first() float64 { return p.load[0].RPS }

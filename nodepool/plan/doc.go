// Package plan decides what a pool of workers does next: [Decide] is a pure function of one
// [Snapshot].
//
// Every signal, the pods that do not fit, the seasonal floor and the minimum recommend a number of
// nodes, and the largest one wins. What may be done about it now is one [Step] with its reason;
// doing nothing is a step that has a reason as well.
//
// Read decide.go first: it lists the rules in the order in which they are asked. Except for the
// nouns, no file uses one of a later line:
//
//   - what is given and what comes out: pool.go, load.go, instance.go, snapshot.go, reason.go, finding.go, decision.go;
//     what is remembered is a [state.Record]
//   - facts, each computed once: census.go (who is there), recommendations.go, demand.go and idle.go,
//     joined in facts.go
//   - what several rules share: clock.go, doubt.go, budget.go, spare.go, offers.go, placer.go, spread.go, eligible.go,
//     targets.go, picker.go
//   - the rules: launch.go, remove.go, rollout.go, delete.go, and what is decided next to the number of workers:
//     interruptions.go, repair.go, substitutes.go, candidates.go, upkeep.go, findings.go
//   - prepare.go and decide.go, which put them in order, and objection.go
//
// The package reads no clock and draws no random number. It imports the standard library and other
// pure packages only.
package plan

// Package plan decides the next step of a pool of workers: [Decide] is a pure function of a
// [Snapshot].
//
// Every signal, the pods that do not fit, the seasonal floor and the minimum recommend a number of
// nodes. The largest one wins. The decision is one [Step] with its reason; to do nothing is a step
// with a reason as well.
//
// Read decide.go first: it lists the rules in their order. Apart from types, no file uses one of a
// later line:
//
//   - input and output: pool.go, load.go, instance.go, snapshot.go, reason.go, finding.go, decision.go;
//     what is recorded between decisions is a [state.Record]
//   - facts, each computed once: census.go (the workers), recommendations.go, demand.go and idle.go,
//     joined in facts.go
//   - shared by several rules: clock.go, doubt.go, budget.go, spare.go, offers.go, placer.go, spread.go, eligible.go,
//     targets.go, picker.go
//   - rules: launch.go, remove.go, rollout.go, delete.go, and what is decided apart from the number of workers:
//     interruptions.go, repair.go, substitutes.go, candidates.go, upkeep.go, findings.go
//   - prepare.go and decide.go, which apply them in order, and objection.go
//
// The package reads no clock and draws no random number. It imports the standard library and other
// pure packages only.
package plan

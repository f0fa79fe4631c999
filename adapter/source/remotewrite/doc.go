// Package remotewrite is the source of samples that Prometheus servers, agents and collectors push: a receiver of
// Prometheus remote write 1.0 (prometheus.WriteRequest) and 2.0 (io.prometheus.write.v2.Request) on POST /api/v1/write.
//
// # What is taken
//
// A series is a subscription's if it has its metric name and its labels (one that is absent is empty), and its pod label
// names a pod of the subscription's fleet; a namespace label, where there is one, must name the subscription's namespace.
// Everything else is skipped before it is decoded, leaves nothing behind and is counted: senders may push all they have.
// So are samples of pods that no fleet knows. A pod may be scraped before its readiness has come here, at every roll-out;
// a refusal would have senders log an error each time, and could not be acted upon.
//
// State is kept per subscription and instance, and only of instances that the fleet knows. One series is read of each.
// Where two come, neither is, as which of them comes first is chance, until one has been silent for the larger of 30 s and
// five times its spacing.
//
// # What is answered
//
// 204 is for requests all of whose samples were taken or are of no use here; 400 for what can never succeed, which senders
// do not send again. A request that cannot be decoded is refused as a whole; otherwise what can be taken is, and the
// answer tells what was not: invalid labels, a second series of one pod, samples too old or dated ahead of the clock.
// Dating ahead gets an answer of its own, although the sink would refuse such samples, too: their times would make
// everything true look old. (A sample dated less than 10 s ahead of the clock is left to the sink.) The header
// X-Prometheus-Remote-Write-Samples-Written counts what was not refused, since senders take a zero there for a receiver
// that does not understand them.
//
// 413 is for what exceeds a limit, 415 for other encodings, 401 for missing or wrong credentials. Where a retry helps it
// is 503 with Retry-After: too much at once, or the fleets are not known yet. It is not 429, upon which Prometheus
// throws samples away unless it is told otherwise.
package remotewrite

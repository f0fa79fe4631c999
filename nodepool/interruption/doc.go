// Package interruption receives EC2's events about instances from an SQS queue, to which EventBridge sends them: Spot
// interruption warnings, rebalance recommendations and state changes.
//
// A queue belongs to one pool. EventBridge does not know the owner of an instance, so a rule sends each event to the
// queue of every pool, and a pool drops events about other instances. With a shared queue, a pool would drop the
// events of another.
//
// A message is deleted only by [Receiver.Done], which the pool calls when the notice is in its journal; until then SQS
// delivers it again. Irrelevant and malformed messages are deleted at once and counted: no other reader needs them, and
// without a dead letter queue they would be delivered again for days.
package interruption

// Package interruption takes from an SQS queue what EC2 tells of instances by EventBridge: that it takes a Spot instance
// back in two minutes, that it may soon, that an instance stops.
//
// A queue belongs to one pool. EventBridge cannot tell whose an instance is, so a rule sends each event to the queue of
// every pool, and a pool drops what is not about its own instances. Were a queue shared, a pool would drop the events of
// another.
//
// A message is deleted only by [Receiver.Done], which the pool calls when the notice is in its journal; until then SQS tells
// it again. What says nothing to a pool is deleted at once and counted, also what cannot be read: there is nobody else who
// might, and without a dead letter queue it would come again for days.
package interruption

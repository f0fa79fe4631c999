// Package standing tells the scheduler extender what pools of workers are about to do, from the statuses of their
// WorkerPools: which Nodes they have committed to remove, which would go next, and what new ones could come up with.
//
// All of it counts only while the pool is at work. If nothing has been written of it for a while, its loop may be down, and
// nothing is preferred or refused because of what it might do. What it had committed to remove counts a minute longer, and
// beyond that where the Node carries the taint: the extender looks at that by itself.
package standing

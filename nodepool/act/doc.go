// Package act does what was decided. It writes a decision into the journal before it does anything
// of it, and looks again right before it destroys something. Every act can be repeated, and the
// process can be killed at any line.
//
// # Side by side
//
// Removals, launches and small acts run as tasks: see [lockstep]. One goroutine changes the record. When all tasks
// have come to a call or a write, one write is made for all, and then the calls are made at the same time.
//
// # Scale-up
//
// The slots are written down, each with its parameters and its token. Slots with the same parameters share a token,
// and one call launches them, several calls at the same time. The tags of all instances of a call are the same, so an
// instance takes any planned slot that has its token, and its id is written down with the slot. After an error that
// leaves open whether instances were launched, the same call is made again with the same token and count. Where prices
// decide, a slot names further types, and the cloud launches any of these: the type of the instance replaces that of
// the slot.
//
// A definitive error fails the slots of a call, and so does an answer with fewer instances. What was refused cools, at
// the scope of the refusal: a type in a zone and market, the types of a quota, a subnet, a zone, or everything.
// Planned slots whose placement cools are not requested any more. The next cycle plans failed slots again in their
// place. A slot ends with its Node Ready, or when its time to join is over: then the instance is tagged, kept for a
// while, and terminated unless it joins after all. The action ends when no slot is open. If nothing joined, launches
// back off.
//
// # Scale-down
//
// Several nodes are emptied at once. A node is tainted, checked again for what blocks its removal,
// cordoned, and its pods are evicted; when it is found empty, its instance is terminated. Each
// state is written down before the next begins. A node that cannot be emptied takes pods again and
// is left alone for a while. If workers are desired after all, every node that is not empty yet is
// given back. While the cloud or the cluster are not known, or too many workers are unready,
// nothing goes on.
//
// A removal ends with the termination. What remains of it is an ending in the journal: it deletes the Node once the
// instance is gone, so that no pod runs twice, and no other work waits for an instance that hangs while it shuts down.
//
// # Roll-out
//
// What replaces outdated workers is launched by a scale-up, and they are removed by a scale-down,
// both of reason Outdated. The journal has how many workers there were before the first launch, so
// that the next process knows how many are there only in place of others. Neither starts the
// cooldown of scale-ups.
//
// # Removals outside a scale-down
//
// An interruption is written down before its message is deleted. The instance is replaced at once,
// in an open scale-up or by one that waits for nothing, and its node is emptied at the same time;
// in the last moments pods are deleted instead of evicted. An instance that still has pods is left
// to the cloud: nothing here terminates one.
//
// A worker whose Node has had a bad condition for as long as the pool says is written down as a
// repair. For the time of a drain its pods are evicted by their budgets, and then deleted. Without
// a kubelet nothing reports when they have ended: minutes later the instance is terminated all the
// same, and the Node deleted, after which their controllers make others. No pod is taken from the
// API while it might run. A repair waits while the observation cannot be trusted. Once it has begun
// to evict it goes on, even if the Node is healthy again.
//
// # Upkeep
//
// An instance that an action launched and that has neither a Node nor an action any more is noted
// as pending termination in one cycle and terminated in a later one. Instances that Foresail did
// not launch are left alone. A Node with the pool's label is deleted once its instance is gone and
// it is not Ready. A mark of an action that is over is removed.
package act

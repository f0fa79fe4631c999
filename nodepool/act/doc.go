// Package act carries out decisions. It records a decision in the journal before it acts, and
// checks again right before it destroys something. Every act can be repeated, and the process can
// be killed at any line.
//
// # Concurrency
//
// Removals, launches and small acts run as tasks: see [lockstep]. One goroutine changes the record.
// When all tasks have reached a call or a write, one write is made for all, and then the calls are
// made concurrently.
//
// # Scale-up
//
// A slot is one instance to launch. The slots are recorded, each with its parameters and its token.
// Slots with the same parameters share a token and are launched by one call, and several calls run
// at the same time. All instances of a call have the same tags, so an instance takes any planned
// slot with its token, and its id is recorded with the slot. After an error that leaves open
// whether instances were launched, the same call is repeated with the same token and count. Where
// prices decide, a slot names further types and the cloud may launch any of them: the type of the
// instance replaces that of the slot.
//
// A definitive error fails the slots of a call, and so does an answer with fewer instances. What
// was refused cools, at the scope of the refusal: a type in a zone and market, the types of a
// quota, a subnet, a zone, or everything. Planned slots whose placement cools are not requested.
// The next cycle plans substitutes for failed slots. A slot ends when its Node is Ready or its time
// to join is over. In the latter case the instance is tagged, kept for some time, and terminated
// unless it joins after all. The action ends when no slot is open. If no node joined, launches back
// off.
//
// # Scale-down
//
// Several nodes are drained at once. A node is tainted, checked again for anything that blocks its
// removal, and cordoned, and its pods are evicted. When it is empty its instance is terminated.
// Each state is recorded before the next one begins. A node that cannot be drained is uncordoned
// and not drained again for some time. If workers are desired after all, every node that is not
// empty yet is uncordoned. While the cloud or the cluster is unknown, or too many workers are
// unready, the scale-down waits.
//
// A removal ends with the termination. Its ending stays in the journal until the instance is gone
// and the Node is deleted, so that no pod runs twice and no other work waits for an instance that
// hangs while it shuts down.
//
// # Roll-out
//
// Replacements of outdated workers are launched by a scale-up, and the outdated workers are removed
// by a scale-down, both with the reason Outdated. The journal holds the number of workers before
// the first launch, so that the next process knows how many exist only as replacements. Neither
// starts the cooldown of scale-ups.
//
// # Removals outside a scale-down
//
// An interruption is recorded before its message is deleted. The instance is replaced at once, in
// an open scale-up or by an urgent one, and its node is drained at the same time. In the last
// moments pods are deleted instead of evicted. An instance that still has pods is left to the cloud
// and never terminated here.
//
// A worker whose Node has had a bad condition for the configured time is recorded as a repair. For
// the duration of a drain its pods are evicted within their budgets, and then deleted. Without a
// kubelet nothing reports when they have ended: some minutes later the instance is terminated
// anyway and the Node deleted, after which controllers recreate the pods. No pod is removed from
// the API while it might run. A repair waits while observations cannot be trusted. Once it has
// begun to evict it continues, even if the Node is healthy again.
//
// # Upkeep
//
// An instance that an action launched and that has neither a Node nor an action any more is
// recorded as pending termination in one cycle and terminated in a later one. Instances that
// Foresail did not launch are left alone. A Node with the pool's label is deleted once its instance
// is gone and it is not Ready. The mark of an action that is over is removed.
package act

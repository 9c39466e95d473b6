// Package sim runs the production actors, sessions of attached workers, keeper and router in a
// simulated world. One seed determines everything: which mailbox runs next, the delays and failures
// of the store, when workers report, the speed of each host's clock, and when a member crashes,
// freezes, is cut off, joins or leaves.
//
//	world      virtual time, all runnable work, and the generator that picks
//	           the next item
//	host       what a member's actors run on: mailboxes, background work and clock
//	model      an in-memory store, correct by construction; door is a member's
//	           faulty connection to it
//	operator   starts, stops, crashes and freezes a member; users and pollers
//	           surround it
//	director   does the same with several members, cuts them off from the store
//	           and from each other, and lets them join and leave
//	cluster    a member's part of the cluster: the production keeper and router
//	gossip     what a member hears about the others: liveness, addresses, shard
//	           owners and worker credits; it may be outdated or false
//	lines      the links between members, on which requests get lost, are delayed
//	           and arrive twice
//	attach     the production sessions of a member's attached workers; pipe is a
//	           worker's stream to it
//	hands      attached workers: they are slow, disconnect, return in time or too
//	           late, die, and leave
//	abroad     an external system in which members start work that tasks wait for
//	timetable  a schedule with one task per slot
//	code       functions that are flows: a program as data, its calls by the production
//	           carrier and conversation, the rules that they obey (ledger), their
//	           outcome by their meaning (reference), and replays of their prefixes
//	publisher  deletes a flow and publishes others in its place while tasks of it
//	           are started
//	reference  the outcome of a flow in graph mode according to the core alone
//	evaluator  the outcome of a dag, derived from the meaning of dags and not from
//	           the core
//	keys       limits shared by tasks, and the holders of permits
//	checker    observes every commit when it is written, and every answer
//
// Promises: a seed gives the same run each time, step by step (Result.Hash proves it). Only one
// goroutine runs at a time, so there are no data races. Code that blocks where it must not is a
// failure.
//
// Functions have goroutines of their own, so their runs need a bubble of testing/synctest. Nothing
// else goes on until all of these goroutines wait. Then a seed nearly always gives the same run:
// only the order of two results that end at the same moment may differ.
package sim

// Package sim runs the production actors, sessions of attached workers, keeper and router in a
// world where everything is drawn from one seed: which mailbox is run next, how long the store
// takes and whether it answers, when workers report, how fast a host's clock runs, and when a
// member crashes, freezes, is cut off, joins or leaves.
//
//	world     virtual time, all that may run next, and the generator that picks
//	host      what a member's actors stand on: its mailboxes, background work and clock
//	model     a store in memory, right by construction; door is one member's faulty way to it
//	operator  starts, stops, crashes and freezes a member; users and pollers are its world
//	director  does so with several members, cuts them off from the store and from each other, and has them join and leave
//	cluster   what a member has of its cluster: the production keeper and router
//	gossip    what a member hears of the others: who lives and where, who owns what, how much its workers take; it may be old, or a lie
//	lines     the way from one member to another, on which questions get lost, take long and arrive twice
//	attach    the production sessions of a member's attached workers; pipe is a worker's stream to it
//	hands     workers that attach: they take their time, break off, come back in time or too late, die, and leave
//	abroad    another system, in which members begin work that tasks wait for
//	timetable a schedule, whose slots have one task each
//	publisher deletes a flow, and publishes others in its place, while tasks of it are started
//	reference what the core alone makes of a flow of graph mode, with nobody in its way
//	evaluator what a dag has to come to, written from what dags mean and not from the core
//	keys      limits that tasks share, and who holds what
//	checker   sees every commit at the moment it is written and every answer that is heard
//
// Promises: a seed gives the same run every time, step by step (Result.Hash says so); everything
// runs in one goroutine at a time, so there is no race to lose; what blocks where it must not is a
// failure.
package sim

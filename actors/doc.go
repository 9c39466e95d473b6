// Package actors runs tasks. Every running task is an actor, and the results of its decisions
// become visible only after they are stored.
//
//	tasks        finds, starts and retires task actors; isolates the crash of each
//	 └─ task     one per running task: Decide → commit → effects; supervisor of its steps
//	     └─ step one per active parallel, foreach, fan-out or subflow, nested steps below it:
//	             dispatches and withdraws its jobs, keeps deadlines, passes reports to the task
//	journal      group commit; a task has one row in flight at a time
//	sessions     match ready jobs with credits: pollers, push and attached workers, functions
//
// These are actors: tasks, task, step and sessions. Each owns its fields, and its mailbox is the
// lock. All other parts are structures with locks, which any goroutine may call: here inbox, queue,
// carrierPool and relayQueue, and the packages below this one. Such a package takes the few
// functions that it needs of the member.
//
//	background   goroutines, mailboxes, timers and waits, which end with the member
//	lease        the lease and the time, the health of the store, the end of its history
//	journal      group commit, loading, notices of new rows
//	limiter      permits of keys
//	externals    external work: polls and cancels
//	forward      orders, claims and jobs for other members
//	values       large values, which are outside the store
//	wakes        tasks that are due, or were left unfinished
//	chores       deletion of what is old
//	metrics      counts for Prometheus, and statistics in the store
//	shards       which tasks belong to this member
//
// The package guarantees:
//   - A task actor changes its memory at once, and speaks after the commit. So no effect or answer
//     precedes the journal row that it depends on.
//   - After any answer of the store but "written", the actor drops its state, reloads, and decides
//     all unanswered commands again.
//   - An attempt is dispatched again only in two cases: its carrier is known to be gone, or its
//     report was between two actors when the task's actor crashed.
//   - A task that only waits is a row, not memory.
//   - Everything is bounded, and the answer when a bound is reached is flow.Busy.
//
// A member of a cluster (Config.Others) has the tasks of the shards that it owns: see Gain and
// Lose. It refuses commands for other tasks (flow.Moved) and changes nothing. A task that moves is
// put to rest after all its decisions are stored. The jobs of it that this member carries out
// continue, and their reports are sent to the owner until it accepts them.
package actors

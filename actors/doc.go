// Package actors carries tasks: every running task is an actor, and what it decides is heard only
// after it is stored.
//
//	tasks        finds, starts and retires task actors; the crash of one is nobody else's
//	 └─ task     one per running task: Decide → commit → effects; supervisor of its steps
//	     └─ step one per active parallel, foreach, fan-out or subflow, steps inside below it: dispatches and
//	             withdraws its jobs, keeps their deadlines, hands their reports to the task together
//	committer    group commit; a task has one row under way at a time
//	sessions     ready jobs meet credits: pollers, push and attached workers, local functions, scripts
//
// Promises: a task actor moves in memory at once and speaks after the commit, so no effect and no
// answer precedes the journal row it follows from; any answer of the store but "written" makes the
// actor forget everything, reload and decide again what it has not answered; an attempt is
// dispatched again only when its carrier is known to be gone, or its report was on its way between
// two actors when that of its task crashed; a task that only waits is a row, not memory; everything
// is bounded, and full is a stated answer (flow.Busy).
//
// A member of a cluster (Config.Others) has the tasks of the shards that it owns: Gain, Lose.
// Whatever comes for others is refused (flow.Moved) and has changed nothing. A task that moves is
// put to rest with everything it has decided stored; the jobs of it that this member carries go on,
// and their reports go to whoever has it, until they are taken.
package actors

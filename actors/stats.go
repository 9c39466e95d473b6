package actors

import "sync/atomic"

// Stats are the counts of a running member for metrics.
type Stats struct {
	Actors      map[string]int64 // live actors by kind: task, step
	Steps       int64            // steps ended since the start
	Ready       int64            // jobs waiting in memory for a carrier or a poller
	Messages    int64            // requests without an answer
	Uncommitted int64            // commits waiting for the store
	Resting     int64            // tasks that were put to rest or ended since the start
}

// memberCounts count the current work of a member. Any goroutine may change them.
type memberCounts struct {
	taskActors       atomic.Int64 // task actors in memory
	stepActors       atomic.Int64 // step actors in memory
	steps            atomic.Int64
	ready            atomic.Int64 // jobs that wait for this member's carriers
	queued           atomic.Int64 // poller jobs in memory
	messages         atomic.Int64 // requests without an answer …
	waitingBytes     atomic.Int64 // … and the bytes of their values
	uncommitted      atomic.Int64
	unstoredAttempts atomic.Int64 // attempts that are decided and not stored yet
	rested           atomic.Int64
}

func (c *memberCounts) readStats() Stats {
	return Stats{
		Actors:      map[string]int64{"task": c.taskActors.Load(), "step": c.stepActors.Load()},
		Steps:       c.steps.Load(),
		Ready:       c.waitingInMemory(),
		Messages:    c.messages.Load(),
		Uncommitted: c.uncommitted.Load(),
		Resting:     c.rested.Load(),
	}
}

// waitingInMemory returns how many jobs in memory wait for a carrier or a poller.
func (c *memberCounts) waitingInMemory() int64 { return c.ready.Load() + c.queued.Load() }

// waitingJobs returns how many jobs no carrier has started, including jobs that are not stored yet.
func (c *memberCounts) waitingJobs() int64 { return c.ready.Load() + c.unstoredAttempts.Load() }

package actors

// Stats are the counts of a running member for metrics.
type Stats struct {
	Actors      map[string]int64 // live actors by kind: task, step
	Steps       int64            // steps ended since the start
	Ready       int64            // jobs waiting in memory for a carrier or a poller
	Messages    int64            // requests without an answer
	Uncommitted int64            // commits waiting for the store
	Resting     int64            // tasks put to rest or ended since the start
}

package actors

// Stats is what metrics tell about a running member.
type Stats struct {
	Actors      map[string]int64 // live actors by kind: task, step
	Steps       int64            // steps ended since the start
	Ready       int64            // jobs waiting in memory for a carrier
	Messages    int64            // commands waiting in mailboxes
	Uncommitted int64            // commits waiting for the store
	Resting     int64            // tasks put to rest since the start
}

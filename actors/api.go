package actors

import (
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// NewTask asks for a task of a version.
type NewTask struct {
	VersionID string
	// Newest says that VersionID is only the newest one at the moment: a request that is repeated after
	// another version was published still means the task it started.
	Newest bool
	Params json.RawMessage // JSON object, of a dag any JSON; nil = {}
	Labels map[string]string
	// Key makes starting idempotent: the same key for the same flow is the same task; with another
	// body it is a Conflict. "" = always a new task.
	Key string
	// ID is the task's own, a UUID that the caller chose: then it does what Key does, in all flows at once.
	ID string
}

// Poll asks for queue jobs.
type Poll struct {
	Worker   string
	Services []string
	FlowID   string        // only jobs of this flow; "" = of all
	Labels   []string      // of the worker: jobs that ask for others are not for it
	Max      int           // jobs at most; 0 = 1
	Wait     time.Duration // how long to wait for the first one; 0 = not at all
}

// Claimed is a queue job in a poller's hands.
type Claimed struct {
	Job       flow.Job
	Token     string
	ClaimedAt int64 // Unix milliseconds
	Until     int64
}

// Stats is what metrics tell about a running member.
type Stats struct {
	Actors      map[string]int64 // live actors by kind: task, step
	Steps       int64            // steps ended since the start
	Ready       int64            // jobs waiting in memory for a carrier
	Messages    int64            // commands waiting in mailboxes
	Uncommitted int64            // commits waiting for the store
	Resting     int64            // tasks put to rest since the start
}

package troupe

import (
	"context"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/persistence"
)

// memberCalls are the methods of an Engine that call the routes of /v1, grouped by what they are
// about. Each group holds only what its methods use.
type memberCalls struct {
	flowCalls
	taskCalls
	steerCalls
	approvalCalls
	scheduleCalls
	hookCalls
	jobCalls
	clusterCalls
}

type (
	flowCalls     struct{ client *client.Client }
	approvalCalls struct{ client *client.Client }
	scheduleCalls struct{ client *client.Client }
	hookCalls     struct{ client *client.Client }
	jobCalls      struct{ client *client.Client }
	clusterCalls  struct{ client *client.Client }

	taskCalls struct {
		client *client.Client
		closed context.Context // ends when the engine is closed
	}
	steerCalls struct {
		client *client.Client
		tasks  persistence.Tasks
	}
)

// newCalls returns the methods for a client of the member in this process.
func newCalls(c *client.Client, store persistence.Tasks, closed context.Context) memberCalls {
	return memberCalls{flowCalls{c}, taskCalls{c, closed}, steerCalls{c, store}, approvalCalls{c}, scheduleCalls{c},
		hookCalls{c}, jobCalls{c}, clusterCalls{c}}
}

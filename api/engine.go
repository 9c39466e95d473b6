package api

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Store is what they read and keep without asking the engine.
type Store interface {
	persistence.Flows
	persistence.Tasks
	persistence.Queue
	persistence.Logs
	Ping(ctx context.Context) error
}

// Reader tells what tasks are like at this moment, on any member.
type Reader interface {
	View(ctx context.Context, task string) (*persistence.View, error)
	// Each visits tasks in order. Unknown ones are left out; one that cannot be read says so.
	Each(ctx context.Context, tasks []string, visit func(*persistence.View) error) error
	Runs(ctx context.Context, task string, after flow.Place, most, bytes int) (*flow.RunPage, error)
	Run(ctx context.Context, task string, a flow.Address) (*flow.NodeRun, error)
	History(ctx context.Context, task string) (*flow.History, error)
	Plan(ctx context.Context, version string) (*flow.Plan, error)
}

// Registry knows the workers.
type Registry interface {
	Register(ctx context.Context, w persistence.Worker) error
	// Heartbeat is flow.NotFound for an id that never registered.
	Heartbeat(ctx context.Context, id string, load int) error
	// Deregister is flow.NotFound for an id that is not registered.
	Deregister(ctx context.Context, id string) error
	// List tells all workers in the order of their first registration.
	List(ctx context.Context) ([]persistence.Worker, error)
}

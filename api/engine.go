package api

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Engine is what the shell and the graph routes ask of a member.
type Engine interface {
	StartTask(ctx context.Context, t actors.NewTask) (id string, created bool, err error)
	Do(ctx context.Context, task string, cmd flow.Command, request string) error
	Tell(ctx context.Context, task string, cmd flow.Command, request string) ([]flow.Event, error)
	Append(ctx context.Context, task string, at flow.Address, items []json.RawMessage, route, request string) ([]int, error)
	// Watch reads a task's journal from a position on, as it grows; it ends with the task.
	Watch(ctx context.Context, task string, after int64) iter.Seq2[persistence.Row, error]
	// Appears waits until there is a task.
	Appears(ctx context.Context, task string) error
	Poll(ctx context.Context, p actors.Poll) ([]actors.Claimed, error)
	Complete(ctx context.Context, job string, r flow.Report) error
	Extend(ctx context.Context, worker string, jobs []string, token string, by time.Duration) (canceled []string, err error)
	GiveBack(ctx context.Context, claims []actors.Held) error
	Now() time.Time
	Ready() error
	Collectors() []prometheus.Collector
}

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
	// Views reads several tasks at once; an unknown one has a nil view.
	Views(ctx context.Context, tasks []string) ([]*persistence.View, error)
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

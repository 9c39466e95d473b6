package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/payload"
	"github.com/troupe-engine/troupe/persistence"
)

// Member holds the parts of a member that all families of routes use. The first four fields are
// required.
type Member struct {
	Engine   engine.Engine
	Store    Store
	Reader   Reader
	Registry Registry

	// Logs stores log lines that workers send for their jobs. If nil, lines are written to the
	// store immediately.
	Logs interface {
		Add(persistence.LogChunk) bool
	}

	// Streams stores the values that workers send for streams of tasks.
	Streams interface {
		Append(ctx context.Context, writes []persistence.StreamWrite) ([]error, error)
	}

	Payloads *payload.Store // resolves references in values; nil if all values are in the store
	Limits   flow.Limits    // limits for definitions
	// returns an error if programs do not get a secret; nil if this is not known
	Secret func(name string) error
	// returns an error if the member lacks a function; nil if this is not known
	Func      func(name string) error
	WorkerTTL time.Duration // maximum age of the last heartbeat of a live worker; default 15 s
	MaxBody   int64         // maximum bytes of one request; default BodyLimit
	Logger    *slog.Logger  // receives internal errors, never payloads
}

// Check returns an error if a required field is missing.
func (m Member) Check() error {
	if m.Engine == nil || m.Store == nil || m.Reader == nil || m.Registry == nil {
		return errors.New("api: Member needs Engine, Store, Reader and Registry")
	}
	return nil
}

// OrDefault returns the Member with defaults in place of missing fields.
func (m Member) OrDefault() Member {
	m.MaxBody = cmp.Or(max(m.MaxBody, 0), BodyLimit(m.Limits))
	m.WorkerTTL = cmp.Or(max(m.WorkerTTL, 0), 15*time.Second)
	if m.Logger == nil {
		m.Logger = slog.New(slog.DiscardHandler)
	}
	return m
}

// BodyLimit returns the maximum bytes of a request: 8 MiB, or the limit of a value plus 2 MiB for
// the rest of the request.
func BodyLimit(l flow.Limits) int64 {
	return max(8<<20, int64(l.OrDefault().Value)+2<<20)
}

// Store holds the data that the routes read and write without the engine.
type Store interface {
	persistence.Flows
	persistence.Schedules
	persistence.Tasks
	persistence.Queue
	persistence.Logs
	persistence.Streams
	persistence.Hooks
	persistence.Tokens
	persistence.Views
	persistence.Approvals
	Secret(ctx context.Context) (string, error)
	Rows(ctx context.Context, task string, after int64, p persistence.Part) ([]persistence.Row, error)
	ReadStats(ctx context.Context, f persistence.StatsFilter) ([]persistence.StatsRow, error)
	Ping(ctx context.Context) error
}

// Reader reads the current state of tasks, regardless of the member that owns them.
type Reader interface {
	View(ctx context.Context, task string) (*persistence.View, error)
	// Each calls visit for tasks in order and skips unknown tasks. The view of an unreadable task
	// contains the error.
	Each(ctx context.Context, tasks []string, visit func(*persistence.View) error) error
	Runs(ctx context.Context, task string, after flow.Place, most, bytes int) (*flow.RunPage, error)
	Run(ctx context.Context, task string, a flow.Address) (*flow.NodeRun, error)
	History(ctx context.Context, task string) (*flow.History, error)
	// Began returns when a task entered its first step, in Unix milliseconds; 0 if it has not.
	Began(ctx context.Context, task string) (int64, error)
	Steps(ctx context.Context, task string, q flow.StepQuery) (*flow.StepPage, error)
	Units(ctx context.Context, task string, at flow.Address) (*flow.UnitList, error)
	// Sight finds a scope of a loaded task, even if the scope has ended.
	Sight(ctx context.Context, v *persistence.View, scope string) (persistence.Sight, error)
	// ViewAt reads a task in its state after the given row of its journal.
	ViewAt(ctx context.Context, task string, row int64) (*persistence.View, error)
	Plan(ctx context.Context, version string) (*flow.Plan, error)
	// Fork plans a task that continues from the history of another task.
	Fork(ctx context.Context, task, version string, at persistence.ForkAt) (flow.ForkPlan, error)
	Foresee(ctx context.Context, task string, start flow.Start, env flow.Env) (flow.Foresight, error)
	// Permits returns the keys that a task waits for or holds, according to the store.
	Permits(ctx context.Context, task string) ([]persistence.PermitRow, error)
}

// Registry holds the registered workers.
type Registry interface {
	Register(ctx context.Context, w persistence.Worker) error
	// Heartbeat records a heartbeat. It returns flow.NotFound for an id that was never registered.
	Heartbeat(ctx context.Context, id string, load int) error
	// Deregister removes a worker. It returns flow.NotFound for an unknown id.
	Deregister(ctx context.Context, id string) error
	// List returns all workers in the order of their first registration.
	List(ctx context.Context) ([]persistence.Worker, error)
}

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

// Member holds the parts of a member that all families of routes use. All fields except the first
// four have useful defaults.
type Member struct {
	Engine   engine.Engine
	Store    Store
	Reader   Reader
	Registry Registry

	// Logs stores the logs that workers send about their jobs. If nil, they are written to the
	// store immediately.
	Logs interface {
		Add(persistence.LogChunk) bool
	}

	// Streams stores the values that workers send for streams of tasks.
	Streams interface {
		Append(ctx context.Context, writes []persistence.StreamWrite) ([]error, error)
	}

	Payloads *payload.Store // resolves references in values; nil if there are none
	Limits   flow.Limits    // of definitions
	// returns an error for a secret that programs do not get; nil means that this is not known
	Secret func(name string) error
	// returns an error for a function that the member does not have; nil means that this is not
	// known
	Func      func(name string) error
	WorkerTTL time.Duration // greatest age of the last heartbeat of a live worker; 15 s
	MaxBody   int64         // bytes of one request; default BodyLimit
	Logger    *slog.Logger  // gets internal errors, never payloads
}

// Check reports missing fields as an error.
func (m Member) Check() error {
	if m.Engine == nil || m.Store == nil || m.Reader == nil || m.Registry == nil {
		return errors.New("api: Member needs Engine, Store, Reader and Registry")
	}
	return nil
}

// OrDefault returns the Member with defaults for the missing fields.
func (m Member) OrDefault() Member {
	m.MaxBody = cmp.Or(max(m.MaxBody, 0), BodyLimit(m.Limits))
	m.WorkerTTL = cmp.Or(max(m.WorkerTTL, 0), 15*time.Second)
	if m.Logger == nil {
		m.Logger = slog.New(slog.DiscardHandler)
	}
	return m
}

// BodyLimit returns how many bytes a request may have: 8 MiB, or the limit of a value plus room for
// the rest of the request, such as a log.
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

// Reader reads the current state of tasks, on any member.
type Reader interface {
	View(ctx context.Context, task string) (*persistence.View, error)
	// Each visits tasks in order. Unknown tasks are skipped; a task that cannot be read has that
	// error in its view.
	Each(ctx context.Context, tasks []string, visit func(*persistence.View) error) error
	Runs(ctx context.Context, task string, after flow.Place, most, bytes int) (*flow.RunPage, error)
	Run(ctx context.Context, task string, a flow.Address) (*flow.NodeRun, error)
	History(ctx context.Context, task string) (*flow.History, error)
	// Began returns the time when a task's first step was entered; 0 if none was.
	Began(ctx context.Context, task string) (int64, error)
	Steps(ctx context.Context, task string, q flow.StepQuery) (*flow.StepPage, error)
	Units(ctx context.Context, task string, at flow.Address) (*flow.UnitList, error)
	// Sight finds a scope of a task that has been read, even if the scope has ended.
	Sight(ctx context.Context, v *persistence.View, scope string) (persistence.Sight, error)
	// ViewAt reads a task as it was after the given row of its journal.
	ViewAt(ctx context.Context, task string, row int64) (*persistence.View, error)
	Plan(ctx context.Context, version string) (*flow.Plan, error)
	// Fork plans a task that continues from the history of another one.
	Fork(ctx context.Context, task, version string, at persistence.ForkAt) (flow.ForkPlan, error)
	Foresee(ctx context.Context, task string, start flow.Start, env flow.Env) (flow.Foresight, error)
	// Permits returns the keys that a task waits for or holds, according to the store.
	Permits(ctx context.Context, task string) ([]persistence.PermitRow, error)
}

// Registry holds the registered workers.
type Registry interface {
	Register(ctx context.Context, w persistence.Worker) error
	// Heartbeat returns flow.NotFound for an id that was never registered.
	Heartbeat(ctx context.Context, id string, load int) error
	// Deregister returns flow.NotFound for an id that is not registered.
	Deregister(ctx context.Context, id string) error
	// List returns all workers in the order of their first registration.
	List(ctx context.Context) ([]persistence.Worker, error)
}

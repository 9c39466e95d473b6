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

// Member is what all families of routes are served from. The fields below the first four have
// useful defaults.
type Member struct {
	Engine   engine.Engine
	Store    Store
	Reader   Reader
	Registry Registry

	// Logs stores what workers say about their jobs; nil = the store does, at once.
	Logs interface {
		Add(persistence.LogChunk) bool
	}

	Payloads  *payload.Store          // what references in values stand for; nil = there are none
	Limits    flow.Limits             // of definitions
	Secret    func(name string) error // refuses a secret that programs are not given; nil = nobody knows
	Func      func(name string) error // returns an error for a function that the member does not have; nil = it is not known
	WorkerTTL time.Duration           // how old a live worker's last sign of life may be; 15 s
	MaxBody   int64                   // bytes of one request; what BodyLimit says
	Logger    *slog.Logger            // hears what went wrong inside, never what was sent
}

// Check says what is missing.
func (m Member) Check() error {
	if m.Engine == nil || m.Store == nil || m.Reader == nil || m.Registry == nil {
		return errors.New("api: Member needs Engine, Store, Reader and Registry")
	}
	return nil
}

// OrDefault fills in what was not said.
func (m Member) OrDefault() Member {
	m.MaxBody = cmp.Or(max(m.MaxBody, 0), BodyLimit(m.Limits))
	m.WorkerTTL = cmp.Or(max(m.WorkerTTL, 0), 15*time.Second)
	if m.Logger == nil {
		m.Logger = slog.New(slog.DiscardHandler)
	}
	return m
}

// BodyLimit is how many bytes a request may have: 8 MiB, or what a value may have with room for all
// that comes with it, such as a log.
func BodyLimit(l flow.Limits) int64 {
	return max(8<<20, int64(l.OrDefault().Value)+2<<20)
}

// Store is what they read and keep without asking the engine.
type Store interface {
	persistence.Flows
	persistence.Schedules
	persistence.Tasks
	persistence.Queue
	persistence.Logs
	persistence.Hooks
	persistence.Tokens
	persistence.Views
	persistence.Approvals
	Secret(ctx context.Context) (string, error)
	Rows(ctx context.Context, task string, after int64, p persistence.Part) ([]persistence.Row, error)
	ReadStats(ctx context.Context, f persistence.StatsFilter) ([]persistence.StatsRow, error)
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
	// Began is when a task's first step was entered; 0 = none has been.
	Began(ctx context.Context, task string) (int64, error)
	Steps(ctx context.Context, task string, q flow.StepQuery) (*flow.StepPage, error)
	Units(ctx context.Context, task string, at flow.Address) (*flow.UnitList, error)
	// Sight finds a scope of a task that has been read, also when it is over.
	Sight(ctx context.Context, v *persistence.View, scope string) (persistence.Sight, error)
	// ViewAt reads a task as it was when a row of its journal had been written.
	ViewAt(ctx context.Context, task string, row int64) (*persistence.View, error)
	Plan(ctx context.Context, version string) (*flow.Plan, error)
	// Fork plans a task that goes on from the history of another one.
	Fork(ctx context.Context, task, version string, at persistence.ForkAt) (flow.ForkPlan, error)
	Foresee(ctx context.Context, task string, start flow.Start, env flow.Env) (flow.Foresight, error)
	// Permits are the keys that a task waits for or has, by the store.
	Permits(ctx context.Context, task string) ([]persistence.PermitRow, error)
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

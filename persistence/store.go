package persistence

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/troupe-engine/troupe/flow"
)

// Results of a commit and other errors of a store.
var (
	// ErrStale reports that another owner has extended the task's journal. The caller must drop its
	// state and reload.
	ErrStale = errors.New("persistence: the task's journal has gone on without this owner")
	// ErrUnknown reports that the task does not exist: it was never created, or retention deleted
	// it.
	ErrUnknown = errors.New("persistence: no such task")
	// ErrExists reports that a task with this id was created before.
	ErrExists = errors.New("persistence: the task exists already")
	// ErrNoVersion reports that the version of a new task does not exist (any more), because its
	// flow was deleted.
	ErrNoVersion = errors.New("persistence: no such flow version")
	// ErrFenced reports that the sending incarnation is not (or no longer) a member. Nothing was
	// written.
	ErrFenced = errors.New("persistence: this member was fenced off")
	// ErrRewound reports that the store does not know the sending incarnation: the store went back
	// in time, or it is another store. An ErrRewound is an ErrFenced, too.
	ErrRewound = fmt.Errorf("%w: the store does not know this member: it went back in time, or is another store", ErrFenced)
	// ErrNotFound reports that the requested object does not exist.
	ErrNotFound = errors.New("persistence: not found")
	// ErrTaken reports that another member is alive on this store.
	ErrTaken = errors.New("persistence: another member is using this store")
	// ErrStranger reports that the store belongs to a cluster with another name.
	ErrStranger = errors.New("persistence: the store belongs to another cluster")
	// ErrFormat reports that the joining member and the live members cannot read each other's
	// journals.
	ErrFormat = errors.New("persistence: program and store do not fit together")
	// ErrPlace reports that the joining member keeps large values at another place than the members
	// of this store.
	ErrPlace = errors.New("persistence: large values are kept elsewhere")
	// ErrHeld reports that a transaction of a program, in which a task of the flow starts, has not
	// ended yet.
	ErrHeld = errors.New("persistence: a transaction holds the flow")
	// ErrDuplicate reports that the id, slug or name is in use.
	ErrDuplicate = errors.New("persistence: exists already")
	// ErrRefused reports that the store refused a value and did not write the batch. Sent in parts,
	// all commits but the bad one are written.
	ErrRefused = errors.New("persistence: the store refused a value")
	// ErrUnavailable reports that the store cannot be reached or has no room at the moment. Whether
	// a write was done is unknown.
	ErrUnavailable = errors.New("persistence: the store is not available")
)

// Store keeps all data. All methods are safe for concurrent use. Times are Unix milliseconds.
type Store interface {
	Members
	Journal
	Tasks
	Queue
	Permits
	Externals
	Approvals
	Flows
	Schedules
	Workers
	Logs
	Streams
	Stats
	Hooks
	Tokens
	Views
	Holds

	// Ping reports whether the store can be reached.
	Ping(ctx context.Context) error
	// Lanes returns the number of batches that are worth committing concurrently.
	Lanes() int
	Close() error
}

// Journal reads and writes the journals of tasks. It is the hot path.
type Journal interface {
	// Commit writes a batch in one transaction; a task appears in it at most once. The first result
	// has an error per commit: nil, ErrStale, ErrUnknown, ErrExists or ErrNoVersion. The second is
	// about the whole batch: after ErrFenced and ErrRefused nothing was written, and after any
	// other failure it is unknown whether anything was.
	Commit(ctx context.Context, incarnation string, batch []Commit) ([]error, error)
	// Load reads the data to fold tasks: the newest snapshot or checkpoint and the rows after it.
	// The result has the order of ids; an unknown task has a nil record.
	Load(ctx context.Context, ids []string) ([]*Record, error)
	// Sizes returns the number of bytes of snapshot and rows that Load would read, without reading
	// them. The result has the order of ids; an unknown task has 0.
	Sizes(ctx context.Context, ids []string) ([]int64, error)
	// Rows reads a part of a task's journal after a sequence number.
	Rows(ctx context.Context, task string, after int64, p Part) ([]Row, error)
	// Checkpoints returns the sequence numbers of the rows with a checkpoint after them, in order.
	Checkpoints(ctx context.Context, task string) ([]int64, error)
	// Checkpoint returns the checkpoint after a row, or ErrNotFound.
	Checkpoint(ctx context.Context, task string, seq int64) (snapshot []byte, err error)
	// Unfinished returns tasks of the given shards that have not ended and are not at rest, in
	// order of id after the given id.
	Unfinished(ctx context.Context, shards ShardSet, after string, limit int) ([]string, error)
	// DueWakes returns the wakes of resting tasks of the given shards that are due by before,
	// earliest first.
	DueWakes(ctx context.Context, shards ShardSet, before int64, limit int) ([]Wake, error)
}

// Commit is what one task writes at once: one row of its journal (if Events is set) and changes to
// other rows.
type Commit struct {
	Task   string
	Create *Create // set for the first row of a task, with Seq 1
	// sequence number of the row: the previous one plus 1. Without Events, that of the last row
	// written
	Seq    int64
	Events []byte // encoded by flow.AppendEvents; nil for a commit that only puts the task to rest
	At     int64  // time of the commit

	Columns  *Columns      // nil = unchanged
	Snapshot flow.Snapshot // snapshot of the state after Seq; nil = none
	// Checkpoint keeps Snapshot permanently, as a position where reading the history may begin.
	// Otherwise the next snapshot replaces it. Only with Events.
	Checkpoint bool
	// Rest sets whether the task is at rest from now on; nil = unchanged. Ending the rest deletes
	// its wake.
	Rest *Rest

	Enqueue []QueueRow
	Dequeue []string       // job ids; applied after Enqueue, so a job in both does not wait
	Permits *PermitChanges // nil = none

	Externals *ExternalChanges // nil = none
	Approvals []ApprovalRow    // approvals that begin or end; each at most once
}

// CheckpointDue reports whether a checkpoint is worthwhile, given the bytes of journal since the
// last snapshot and that snapshot's size. From that size on reading the journal takes longer than
// reading the state, and the checkpoint costs no more than the journal.
func CheckpointDue(journal, snapshot int) bool { return journal >= max(checkpointBytes, snapshot) }

const checkpointBytes = 64 << 10

// LargeSnapshot is the size in bytes from which a snapshot should be a checkpoint. Stores keep
// checkpoints in parts and other snapshots as a whole.
const LargeSnapshot = 1 << 20

// Create is the fixed data of a task, set when it starts.
type Create struct {
	FlowID, VersionID string
	Labels            map[string]string
	Params            []byte // JSON object
	// hash of the start request, to detect a different request with the same key; may be ""
	BodyHash  string
	CreatedAt int64
}

// Columns are the columns of a task that listings show. In texts U+FFFD replaces what databases
// cannot store: NUL and invalid UTF-8.
type Columns struct {
	Status     string // flow.TaskStatus
	Cursor     string
	LastAction string
	Error      string
	Paused     bool
	Steps      int
	Followed   int // failed steps after which the task continued
	EndedAt    int64
	// kinds of waits, 0 = none; written with the events that begin or end a wait
	Waits flow.WaitKinds
	Wait  flow.Awaited // the wait to show first, an approval before others; zero = none
}

// Rest is the rest state of a task. No member needs a resting task in memory; its due time or a
// message brings it back.
type Rest struct {
	Resting bool
	Due     int64 // due time of its wake; 0 = none
}

// Record is a task as stored.
type Record struct {
	TaskRow
	Snapshot    []byte // nil = none
	SnapshotSeq int64
	Rows        []Row // rows after SnapshotSeq
	Resting     bool
}

// Row is one commit of a task's journal.
type Row struct {
	Seq    int64
	At     int64
	Events []byte
}

// Part bounds one read of a journal: at most Rows rows, and no row that begins after Bytes bytes of
// events. So a read takes at most that memory plus one row. The first row is always included.
type Part struct{ Rows, Bytes int }

// Full reports whether more rows may follow the given ones.
func (p Part) Full(rows []Row) bool {
	bytes := 0
	for _, r := range rows {
		bytes += len(r.Events)
	}
	return len(rows) == p.Rows || bytes >= p.Bytes
}

// Wake is a task at rest with its due time.
type Wake struct {
	Task string
	Due  int64
}

// Tasks reads and deletes tasks.
type Tasks interface {
	// returns ErrNotFound if there is none
	Task(ctx context.Context, id string) (*TaskRow, error)
	ListTasks(ctx context.Context, f TaskFilter) ([]TaskRow, error) // without params
	CountTasks(ctx context.Context, f TaskFilter) (int, error)      // ignores order and paging
	// CountTasksBy counts tasks by status or by another property. It ignores order and paging.
	//
	// If the filter uses only flows, states and creation times, a count by status counts each end
	// state up to Most and all unfinished tasks together. In every other case it counts at most
	// Most tasks in all. A group that may have more tasks has More set; a group without tasks is
	// missing.
	CountTasksBy(ctx context.Context, f TaskFilter, by By) (map[string]Group, error)
	// NewestOf returns the newest tasks of every given flow, at most perFlow of each. The flows are
	// in order of their ids.
	NewestOf(ctx context.Context, flows []string, perFlow int) ([]TaskMark, error)
	// CountByShard counts the unfinished tasks per shard, for shards that have some. It reads each
	// of these tasks.
	CountByShard(ctx context.Context) (map[int]ShardTasks, error)
	// EndedBetween returns the tasks that ended at or after from and before before, in the order in
	// which DeleteEnded deletes them.
	EndedBetween(ctx context.Context, from, before int64, limit int) ([]TaskEnd, error)
	// DeleteEnded deletes up to limit tasks that ended before a time, with all their data.
	DeleteEnded(ctx context.Context, before int64, limit int) (int, error)
}

// TaskMark is a task as a dot in a row of dots.
type TaskMark struct {
	Flow, ID, Status string
	CreatedAt        int64
}

// TaskEnd is a task with the time when it ended.
type TaskEnd struct {
	ID      string
	EndedAt int64
}

// ShardTasks counts the unfinished tasks of a shard.
type ShardTasks struct {
	Active  int // tasks with work to do; their owner has them in memory
	Resting int // tasks that wait for a time or a message
}

// With returns the counts with one more task.
func (s ShardTasks) With(resting bool) ShardTasks {
	if resting {
		s.Resting++
	} else {
		s.Active++
	}
	return s
}

// TaskRow is a task in a listing.
type TaskRow struct {
	ID, FlowID, VersionID string
	FlowName, FlowSlug    string // of the flow, if it exists
	VersionNumber         int
	Columns
	Labels    map[string]string
	Params    []byte
	BodyHash  string
	CreatedAt int64
	UpdatedAt int64 // At of the last commit with Create or Columns
}

// TaskFilter selects tasks. Zero fields do not filter.
type TaskFilter struct {
	FlowID, FlowSlug, VersionID string
	FlowIDs                     []string // any of them
	Version                     int      // version number
	IDPrefix                    string   // prefix of the task id
	Node                        string   // node of the cursor
	Failure                     string   // error as normalized by Failure
	// substring of the error, ignoring case, or a label's value, or a prefix of the id
	Text                   string
	Statuses               []string
	Labels                 map[string]string // all must match
	CreatedFrom, CreatedTo int64             // from inclusive, to exclusive
	EndedFrom, EndedTo     int64             // same for the end time; selects ended tasks only
	// same for the milliseconds from creation to end; selects ended tasks only
	LastedFrom, LastedTo int64
	Paused               *bool
	Waits                flow.WaitKinds // waits of any of these kinds
	Queued               string         // a service: only tasks with jobs in its queue
	// only tasks behind this spot in list order; the task there may be gone
	Before Spot
	// only tasks up to and including this spot; not with ByUpdate
	Through       Spot
	ByUpdate      bool // newest update first instead of newest creation
	ByEnd         bool // newest end first; selects ended tasks only
	Oldest        bool // oldest first instead; not with ByUpdate
	Offset, Limit int
	Most          int // limit of counting; 0 = none
}

// OfFlows reports whether the filter names flows.
func (f *TaskFilter) OfFlows() bool { return f.FlowID != "" || f.FlowSlug != "" || len(f.FlowIDs) > 0 }

// Indexed returns the filter without the conditions that no index serves, and reports whether there
// were any. Each task that the wider filter selects has to be read to check those conditions. A
// caller that lists by them bounds the number of reads with Through.
func (f TaskFilter) Indexed() (wider TaskFilter, searches bool) {
	wider = f
	wider.Text, wider.Failure, wider.Node, wider.Version, wider.LastedFrom, wider.LastedTo = "", "", "", 0, 0, 0
	return wider, f.Text != "" || f.Failure != "" || f.Node != "" || f.Version > 0 || f.LastedFrom > 0 || f.LastedTo > 0
}

// Spot is a position of a task in list order.
type Spot struct {
	CreatedAt int64  // end time for lists by end
	ID        string // "" = no position
}

// By selects the property that tasks are counted by.
type By struct {
	Flow  bool   // id of the flow
	Label string // value of this label; "" = not by label. Tasks without the label count as ""
}

// Group is the number of tasks with one value.
type Group struct {
	Count int
	More  bool // there may be more
}

// Queue reads the jobs that wait for pollers. Commits create and end the rows.
type Queue interface {
	// QueueRows returns waiting rows after a position, in order of (EnqueuedAt, Turn). If services
	// is nil, it returns the rows of all services.
	QueueRows(ctx context.Context, services []string, afterAt int64, afterTurn string, limit int) ([]QueueRow, error)
	// QueueFor returns waiting rows of a service that a poller may take, in the same order.
	QueueFor(ctx context.Context, f QueueFilter, afterAt int64, afterTurn string, limit int) ([]QueueRow, error)
	// QueueBefore counts the rows of the same service before a task's job, up to most. It returns
	// ErrNotFound if the job does not wait.
	QueueBefore(ctx context.Context, task, job string, most int) (int, error)
	// QueueServices returns the services that have waiting rows, in order of name.
	QueueServices(ctx context.Context) ([]string, error)
	// QueueDepth returns the number of waiting rows and the oldest one, by service.
	QueueDepth(ctx context.Context) (map[string]QueueStat, error)
}

// QueueRow is a job that waits for a poller or is held by one.
type QueueRow struct {
	JobID, Task, Service string
	EnqueuedAt           int64
	Turn                 string   // order among jobs with the same EnqueuedAt; ASCII
	Size                 int      // bytes sent to a poller
	Labels               []string // labels that a poller needs, all of them; nil = none
}

// QueueFilter selects the jobs of a service that a poller may take.
type QueueFilter struct {
	Service string
	FlowID  string   // only this flow; "" = all
	Labels  []string // labels of the poller
}

// QueueStat is the state of a service's queue, for metrics.
type QueueStat struct {
	Waiting int
	Tasks   int // number of tasks with these jobs
	Oldest  int64
}

// Flows stores flows and their versions.
type Flows interface {
	CreateFlow(ctx context.Context, f Flow) error // returns ErrDuplicate for a slug in use
	Flow(ctx context.Context, id string) (*Flow, error)
	FlowBySlug(ctx context.Context, slug string) (*Flow, error)
	// ListFlows returns flows and their total number, newest first and without trial flows; limit 0
	// = all.
	ListFlows(ctx context.Context, offset, limit int) ([]Flow, int, error)
	// ListTried returns the trial flows created before a time, oldest first.
	ListTried(ctx context.Context, before int64, limit int) ([]Flow, error)
	// CreateVersion stores a version. Number 0 = the highest of the flow plus 1; numbers may
	// repeat. It returns ErrNotFound if the flow does not exist.
	CreateVersion(ctx context.Context, v Version) error
	Version(ctx context.Context, id string) (*Version, error)
	// FindVersion returns a version by number. Number 0 = the highest published one; of equal
	// numbers, the first created.
	FindVersion(ctx context.Context, flowID string, number int) (*Version, error)
	// highest number first, without definitions
	ListVersions(ctx context.Context, flowID string) ([]Version, error)
	// DeleteFlow deletes up to limit tasks of a flow in any state, the newest first, with all their
	// data, and returns how many. A result below limit means that the flow itself is deleted, too,
	// with its versions; no task of it starts after that. Its schedules are deleted first.
	// DeleteFlow returns ErrHeld if it waited too long for transactions that start tasks of the
	// flow.
	DeleteFlow(ctx context.Context, id string, limit int) (tasks int, err error)
}

// Flow is the identity of a named definition.
type Flow struct {
	ID, Slug, Name, Description string // Slug may be ""
	CreatedAt                   int64
	// a trial flow: it exists for one task of an unpublished definition
	Tried bool
}

// MaxVersion is the highest possible version number.
const MaxVersion = math.MaxInt32

// Version is one immutable state of a flow.
type Version struct {
	ID, FlowID string
	Number     int
	Definition []byte // JSON text as given, byte for byte
	Status     string // any text; only "published" has a meaning
	Hash       string // hash of the definition; "" if not needed
	CreatedAt  int64
}

// Workers stores the registered workers across restarts.
type Workers interface {
	PutWorker(ctx context.Context, w Worker) error // upsert by ID
	// TouchWorkers stores heartbeats. Times only move forward, because members may receive the
	// heartbeats of a worker in any order.
	TouchWorkers(ctx context.Context, beats []Heartbeat) error
	ListWorkers(ctx context.Context) ([]Worker, error) // in order of first registration
	DeleteWorker(ctx context.Context, id string) error // deleting an unknown one is no error
	DeleteWorkers(ctx context.Context, silentSince int64) (int, error)
}

// Worker is a registered worker.
type Worker struct {
	ID, URL, Type string
	Services      []string
	Labels        []string // labels that it offers to jobs; nil = none
	Secret        string   // sent with every call to it and never shown; "" = none
	Load          int
	LastHeartbeat int64
	RegisteredAt  int64 // time of the first registration
	JoinedAt      int64 // time of the last registration; 0 = unknown
	PolledAt      int64 // time of its last poll; 0 = unknown
}

// Heartbeat is a sign of life of a worker.
type Heartbeat struct {
	ID   string
	Load int
	At   int64
	// PolledAt is the time of the worker's last poll; 0 = none.
	PolledAt int64
}

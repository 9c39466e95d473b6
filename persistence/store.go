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
	// ErrExists reports that a task with this id exists already.
	ErrExists = errors.New("persistence: the task exists already")
	// ErrNoVersion reports that the version of a new task does not exist, because its flow was
	// deleted or never existed.
	ErrNoVersion = errors.New("persistence: no such flow version")
	// ErrFenced reports that the incarnation is not a member, or no longer. Nothing was written.
	ErrFenced = errors.New("persistence: this member was fenced off")
	// ErrRewound reports that the store does not know the incarnation, because the store went back
	// in time or is another store. It wraps ErrFenced.
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
	// ErrHeld reports that another transaction, in which a task of the flow starts, has not ended
	// yet.
	ErrHeld = errors.New("persistence: a transaction holds the flow")
	// ErrDuplicate reports that the id, slug or name is in use.
	ErrDuplicate = errors.New("persistence: exists already")
	// ErrRefused reports that the store refused a value and did not write the batch. If the commits
	// are sent separately, all but the bad one are written.
	ErrRefused = errors.New("persistence: the store refused a value")
	// ErrUnavailable reports that the store cannot be reached or has no space. The write may have
	// been done.
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

	// Ping returns an error if the store cannot be reached.
	Ping(ctx context.Context) error
	// Lanes returns how many batches the store can usefully commit at the same time.
	Lanes() int
	Close() error
}

// Journal reads and writes the journals of tasks. It is the most frequently used part of a store.
type Journal interface {
	// Commit writes a batch in one transaction; a task appears in it at most once. The slice has an
	// error for each commit: nil, ErrStale, ErrUnknown, ErrExists or ErrNoVersion. The second
	// result concerns the whole batch. After ErrFenced or ErrRefused nothing was written; after any
	// other error, the batch may have been written.
	Commit(ctx context.Context, incarnation string, batch []Commit) ([]error, error)
	// Load reads the data to fold tasks: the newest snapshot or checkpoint and the rows after it.
	// The result has the order of ids, with nil for unknown tasks.
	Load(ctx context.Context, ids []string) ([]*Record, error)
	// Sizes returns how many bytes of snapshot and rows Load would read. The result has the order
	// of ids, with 0 for unknown tasks.
	Sizes(ctx context.Context, ids []string) ([]int64, error)
	// Rows reads a part of a task's journal after a sequence number.
	Rows(ctx context.Context, task string, after int64, p Part) ([]Row, error)
	// Checkpoints returns the sequence numbers of the rows that a checkpoint follows, in order.
	Checkpoints(ctx context.Context, task string) ([]int64, error)
	// Checkpoint returns the checkpoint after a row, or ErrNotFound.
	Checkpoint(ctx context.Context, task string, seq int64) (snapshot []byte, err error)
	// Unfinished returns tasks of the given shards that have not ended and are not at rest, in
	// order of id after the given id.
	Unfinished(ctx context.Context, shards ShardSet, after string, limit int) ([]string, error)
	// DueWakes returns the resting tasks of the given shards that are due before a time, earliest
	// first.
	DueWakes(ctx context.Context, shards ShardSet, before int64, limit int) ([]Wake, error)
}

// Commit is one write of a task: one row of its journal (if Events is set) and changes to other
// rows.
type Commit struct {
	Task   string
	Create *Create // set for the first row of a task, with Seq 1
	// sequence number of the row, which is the previous one plus 1; without Events, that of the
	// last written row
	Seq    int64
	Events []byte // encoded by flow.AppendEvents; nil if the commit only puts the task to rest
	At     int64  // time of the commit

	Columns  *Columns      // nil means unchanged
	Snapshot flow.Snapshot // snapshot of the state after Seq; nil means none
	// Checkpoint keeps Snapshot permanently, so that reading the history may begin there. Otherwise
	// the next snapshot replaces it. Checkpoint requires Events.
	Checkpoint bool
	// Rest sets whether the task is at rest; nil means unchanged. Ending the rest deletes the
	// task's wake.
	Rest *Rest

	Enqueue []QueueRow
	Dequeue []string       // job ids to remove; applied after Enqueue, so Dequeue wins
	Permits *PermitChanges // nil means none

	Externals *ExternalChanges // nil means none
	Approvals []ApprovalRow    // approvals that begin or end, each at most once
}

// CheckpointDue reports whether a checkpoint is worthwhile. journal is the number of journal bytes
// since the last snapshot, and snapshot the size of that snapshot. Beyond that size, reading the
// journal takes longer than reading the state.
func CheckpointDue(journal, snapshot int) bool { return journal >= max(checkpointBytes, snapshot) }

const checkpointBytes = 64 << 10

// LargeSnapshot is the size in bytes from which a snapshot should be a checkpoint. Stores divide
// checkpoints into parts and keep other snapshots as a whole.
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

// Columns are the columns of a task in listings. In their texts, U+FFFD replaces NUL and invalid
// UTF-8, which databases cannot store.
type Columns struct {
	Status     string // flow.TaskStatus
	Cursor     string
	LastAction string
	Error      string
	Paused     bool
	Steps      int
	Followed   int // number of failed steps after which the task continued
	EndedAt    int64
	// kinds of current waits, 0 if none; written when a wait begins or ends
	Waits flow.WaitKinds
	Wait  flow.Awaited // the wait to show first, with approvals before others; zero if none
}

// Rest is the rest state of a task. A resting task is not in memory; its due time or a message
// wakes it.
type Rest struct {
	Resting bool
	Due     int64 // due time of its wake; 0 means none
}

// Record is a task as stored.
type Record struct {
	TaskRow
	Snapshot    []byte // nil means none
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
// events. So a read takes at most Bytes plus one row. The first row is always included.
type Part struct{ Rows, Bytes int }

// Full reports whether a read of this part that returned the given rows may be followed by more.
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
	// returns ErrNotFound if there is no such task
	Task(ctx context.Context, id string) (*TaskRow, error)
	ListTasks(ctx context.Context, f TaskFilter) ([]TaskRow, error) // without params
	CountTasks(ctx context.Context, f TaskFilter) (int, error)      // ignores order and paging
	// CountTasksBy counts tasks by status or by another property. It ignores order and paging.
	//
	// A filter with only flows, states and creation times allows a fast count by status. Then each
	// end state counts up to Most, and all unfinished tasks count together up to Most. In all other
	// cases, it counts at most Most tasks in total. A group that may have more tasks has More set;
	// a group without tasks is missing.
	CountTasksBy(ctx context.Context, f TaskFilter, by By) (map[string]Group, error)
	// NewestOf returns the newest tasks of each given flow, at most perFlow of each, in order of
	// the flow ids.
	NewestOf(ctx context.Context, flows []string, perFlow int) ([]TaskMark, error)
	// CountByShard counts the unfinished tasks by shard, omitting shards without any. It reads each
	// of these tasks.
	CountByShard(ctx context.Context) (map[int]ShardTasks, error)
	// EndedBetween returns the tasks that ended at or after from and before before. They have the
	// order in which DeleteEnded deletes them.
	EndedBetween(ctx context.Context, from, before int64, limit int) ([]TaskEnd, error)
	// DeleteEnded deletes up to limit tasks that ended before a time, with all their data.
	DeleteEnded(ctx context.Context, before int64, limit int) (int, error)
}

// TaskMark is the part of a task that a row of status dots shows.
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
	Active  int // tasks with work to do, which are in the memory of their owner
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
	FlowName, FlowSlug    string // name and slug of the flow, if the flow exists
	VersionNumber         int
	Columns
	Labels    map[string]string
	Params    []byte
	BodyHash  string
	CreatedAt int64
	UpdatedAt int64 // time of the last commit with Create or Columns
}

// TaskFilter selects tasks. Zero fields do not filter.
type TaskFilter struct {
	FlowID, FlowSlug, VersionID string
	FlowIDs                     []string // any of these flows
	Version                     int      // version number
	IDPrefix                    string   // prefix of the task id
	Node                        string   // node of the cursor
	Failure                     string   // error as normalized by Failure
	// substring of the error (ignoring case), value of a label, or prefix of the id
	Text                   string
	Statuses               []string
	Labels                 map[string]string // all must match
	CreatedFrom, CreatedTo int64             // from inclusive, to exclusive
	EndedFrom, EndedTo     int64             // same for the end time; selects ended tasks only
	// milliseconds from creation to end; from inclusive, to exclusive; selects ended tasks only
	LastedFrom, LastedTo int64
	Paused               *bool
	Waits                flow.WaitKinds // waits of any of these kinds
	Queued               string         // a service; selects only tasks with jobs in its queue
	// only tasks behind this position in list order; the task at the position may be gone
	Before Spot
	// only tasks up to and including this position; not with ByUpdate
	Through       Spot
	ByUpdate      bool // newest update first instead of newest creation
	ByEnd         bool // newest end first; selects ended tasks only
	Oldest        bool // oldest first instead; not with ByUpdate
	Offset, Limit int
	Most          int // limit of counting; 0 means none
}

// OfFlows reports whether the filter selects particular flows.
func (f *TaskFilter) OfFlows() bool { return f.FlowID != "" || f.FlowSlug != "" || len(f.FlowIDs) > 0 }

// Indexed returns the filter without conditions that have no index, and reports whether there were
// any. Each task of the wider filter must be read to check these conditions. So callers bound the
// number of reads with Through.
func (f TaskFilter) Indexed() (wider TaskFilter, searches bool) {
	wider = f
	wider.Text, wider.Failure, wider.Node, wider.Version, wider.LastedFrom, wider.LastedTo = "", "", "", 0, 0, 0
	return wider, f.Text != "" || f.Failure != "" || f.Node != "" || f.Version > 0 || f.LastedFrom > 0 || f.LastedTo > 0
}

// Spot is a position of a task in list order.
type Spot struct {
	CreatedAt int64  // end time for lists by end
	ID        string // "" means no position
}

// By selects the property that tasks are counted by.
type By struct {
	Flow  bool   // id of the flow
	Label string // count by this label; "" means no label. Tasks without the label count as ""
}

// Group is the count of tasks with one value.
type Group struct {
	Count int
	More  bool // there may be more tasks than counted
}

// Queue reads the jobs that wait for pollers. Commits create and end the rows.
type Queue interface {
	// QueueRows returns waiting rows after a position, in order of (EnqueuedAt, Turn). If services
	// is nil, it returns the rows of all services.
	QueueRows(ctx context.Context, services []string, afterAt int64, afterTurn string, limit int) ([]QueueRow, error)
	// QueueFor returns waiting rows of a service that a poller may take, in the same order.
	QueueFor(ctx context.Context, f QueueFilter, afterAt int64, afterTurn string, limit int) ([]QueueRow, error)
	// QueueBefore counts the rows of the same service before a task's job, up to most. It returns
	// ErrNotFound if the job is not waiting.
	QueueBefore(ctx context.Context, task, job string, most int) (int, error)
	// QueueServices returns the services that have waiting rows, in order of name.
	QueueServices(ctx context.Context) ([]string, error)
	// QueueDepth returns the number of waiting rows and the oldest one, by service.
	QueueDepth(ctx context.Context) (map[string]QueueStat, error)
}

// QueueRow is a job that waits for a poller, or that a poller has claimed.
type QueueRow struct {
	JobID, Task, Service string
	EnqueuedAt           int64
	Turn                 string   // order among jobs with the same EnqueuedAt; ASCII
	Size                 int      // bytes to send to a poller
	Labels               []string // labels that a poller must have; nil means none
}

// QueueFilter selects the jobs of a service that a poller may take.
type QueueFilter struct {
	Service string
	FlowID  string   // id of the only flow; "" means all
	Labels  []string // labels of the poller
}

// QueueStat is the state of a service's queue, for metrics.
type QueueStat struct {
	Waiting int
	Tasks   int // number of tasks that have these jobs
	Oldest  int64
}

// Flows stores flows and their versions.
type Flows interface {
	CreateFlow(ctx context.Context, f Flow) error // returns ErrDuplicate for a slug in use
	Flow(ctx context.Context, id string) (*Flow, error)
	FlowBySlug(ctx context.Context, slug string) (*Flow, error)
	// ListFlows returns flows and their total number, newest first and without trial flows. limit 0
	// means all.
	ListFlows(ctx context.Context, offset, limit int) ([]Flow, int, error)
	// ListTried returns the trial flows created before a time, oldest first.
	ListTried(ctx context.Context, before int64, limit int) ([]Flow, error)
	// CreateVersion stores a version. Number 0 means the highest number of the flow plus 1; numbers
	// may repeat. It returns ErrNotFound if the flow does not exist.
	CreateVersion(ctx context.Context, v Version) error
	Version(ctx context.Context, id string) (*Version, error)
	// FindVersion returns a version by number. Number 0 means the highest published one. Of equal
	// numbers, it returns the first created.
	FindVersion(ctx context.Context, flowID string, number int) (*Version, error)
	// highest number first, without definitions
	ListVersions(ctx context.Context, flowID string) ([]Version, error)
	// DeleteFlow deletes up to limit tasks of a flow, the newest first, with all their data, and
	// returns how many. A result below limit means that the flow and its versions are deleted too.
	// Schedules of the flow are deleted first. It returns ErrHeld if it waited too long for
	// transactions that start tasks of the flow.
	DeleteFlow(ctx context.Context, id string, limit int) (tasks int, err error)
}

// Flow is the identity of a named definition.
type Flow struct {
	ID, Slug, Name, Description string // Slug may be ""
	CreatedAt                   int64
	// a trial flow, which exists for one task of an unpublished definition
	Tried bool
}

// MaxVersion is the highest possible version number.
const MaxVersion = math.MaxInt32

// Version is one immutable state of a flow.
type Version struct {
	ID, FlowID string
	Number     int
	Definition []byte // JSON text as given, byte for byte
	Status     string // any text; only "published" has a special meaning
	Hash       string // hash of the definition; "" if unused
	CreatedAt  int64
}

// Workers stores the registered workers across restarts.
type Workers interface {
	PutWorker(ctx context.Context, w Worker) error // upsert by ID
	// TouchWorkers stores heartbeats. It never moves times back, because members may receive the
	// heartbeats of a worker in any order.
	TouchWorkers(ctx context.Context, beats []Heartbeat) error
	ListWorkers(ctx context.Context) ([]Worker, error) // in order of first registration
	DeleteWorker(ctx context.Context, id string) error // returns nil for an unknown id
	DeleteWorkers(ctx context.Context, silentSince int64) (int, error)
}

// Worker is a registered worker.
type Worker struct {
	ID, URL, Type string
	Services      []string
	Labels        []string // labels of the worker, which jobs may require; nil means none
	Secret        string   // secret sent with every call to the worker, never shown; "" means none
	Load          int
	LastHeartbeat int64
	RegisteredAt  int64 // time of the first registration
	JoinedAt      int64 // time of the last registration; 0 means unknown
	PolledAt      int64 // time of the last poll; 0 means unknown
}

// Heartbeat is a sign of life of a worker.
type Heartbeat struct {
	ID   string
	Load int
	At   int64
	// PolledAt is the time of the worker's last poll; 0 means none.
	PolledAt int64
}

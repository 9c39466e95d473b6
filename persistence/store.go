package persistence

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/troupe-engine/troupe/flow"
)

// Answers to a commit.
var (
	// ErrStale: the journal has gone on without the one who commits; forget everything and reload.
	ErrStale = errors.New("persistence: the task's journal has gone on without this owner")
	// ErrUnknown: there is no such task (never created, or deleted by retention).
	ErrUnknown = errors.New("persistence: no such task")
	// ErrExists: a task with this id was created before.
	ErrExists = errors.New("persistence: the task exists already")
	// ErrNoVersion: the version of a task that begins is not there, or no longer: its flow was
	// deleted.
	ErrNoVersion = errors.New("persistence: no such flow version")
	// ErrFenced: the incarnation that sends is not (or no longer) a member. Nothing was written.
	ErrFenced = errors.New("persistence: this member was fenced off")
	// ErrRewound: the store does not know the incarnation that sends. The store went back in time,
	// or is another one. An ErrRewound is an ErrFenced, too.
	ErrRewound = fmt.Errorf("%w: the store does not know this member: it went back in time, or is another store", ErrFenced)
	// ErrNotFound: no such flow, version or worker.
	ErrNotFound = errors.New("persistence: not found")
	// ErrTaken: another member lives on this store.
	ErrTaken = errors.New("persistence: another member is using this store")
	// ErrStranger: the store belongs to a cluster of another name.
	ErrStranger = errors.New("persistence: the store belongs to another cluster")
	// ErrFormat: who wants to join cannot work with what the members of this store write, or they
	// not with what it writes.
	ErrFormat = errors.New("persistence: program and store do not fit together")
	// ErrPlace: who wants to join keeps large values elsewhere than the members of this store, or
	// they than it.
	ErrPlace = errors.New("persistence: large values are kept elsewhere")
	// ErrHeld: a transaction of a program in which a task of the flow begins has not ended yet.
	ErrHeld = errors.New("persistence: a transaction holds the flow")
	// ErrDuplicate: a flow with this id or slug, or a version with this id, exists.
	ErrDuplicate = errors.New("persistence: exists already")
	// ErrRefused: the store refused a value; the batch was not written. Sent in parts, all but the
	// one bad commit will be.
	ErrRefused = errors.New("persistence: the store refused a value")
	// ErrUnavailable: the store cannot be reached, or has no room, for now. Of a write it is
	// unknown whether it was done.
	ErrUnavailable = errors.New("persistence: the store is not available")
)

// Store keeps everything. All methods are safe for concurrent use. Times are Unix milliseconds.
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
	Stats
	Hooks
	Tokens
	Views
	Holds

	// Ping reports whether the store can be reached.
	Ping(ctx context.Context) error
	// Lanes is how many batches are worth committing at once.
	Lanes() int
	Close() error
}

// Journal is the hot path.
type Journal interface {
	// Commit writes a batch in one transaction, in which a task appears once. The answer has an
	// error for each commit (nil, ErrStale, ErrUnknown, ErrExists, ErrNoVersion). The second result
	// is about the whole batch: ErrFenced or ErrRefused when nothing was written, or a failure
	// after which it is unknown whether anything was.
	Commit(ctx context.Context, incarnation string, batch []Commit) ([]error, error)
	// Load reads what is needed to fold tasks: the newest snapshot or checkpoint and the rows after
	// it. The answer has the order of ids; an unknown task has a nil record.
	Load(ctx context.Context, ids []string) ([]*Record, error)
	// Sizes tells how many bytes of snapshot and rows Load would read of tasks, without reading
	// them. The answer has the order of ids; an unknown task has 0.
	Sizes(ctx context.Context, ids []string) ([]int64, error)
	// Rows reads a part of a task's journal after a sequence number.
	Rows(ctx context.Context, task string, after int64, p Part) ([]Row, error)
	// Checkpoints tells after which rows of a task's journal there is a checkpoint, in order.
	Checkpoints(ctx context.Context, task string) ([]int64, error)
	// Checkpoint reads the one after a row. ErrNotFound when there is none.
	Checkpoint(ctx context.Context, task string, seq int64) (snapshot []byte, err error)
	// Unfinished lists tasks of shards that have neither ended nor are at rest, in order of id
	// after a given one.
	Unfinished(ctx context.Context, shards ShardSet, after string, limit int) ([]string, error)
	// DueWakes lists tasks of shards at rest whose time has come by before, earliest first.
	DueWakes(ctx context.Context, shards ShardSet, before int64, limit int) ([]Wake, error)
}

// Commit is what one task adds at once: one row of its journal (when Events is set) and what
// changed beside it.
type Commit struct {
	Task   string
	Create *Create // with the first row of a task, whose Seq is 1
	Seq    int64   // of the row of Events, the previous one plus 1; without Events, of the last row written
	Events []byte  // encoded by flow.AppendEvents; nil for a commit that only puts the task to rest
	At     int64   // time of the commit

	Columns  *Columns      // nil = unchanged
	Snapshot flow.Snapshot // of the state after Seq; nil = none
	// Checkpoint keeps Snapshot for good, as a place where reading the history may begin; else the
	// next one takes its place. Only with Events.
	Checkpoint bool
	// Rest reports whether the task is at rest from now on; nil = as it was. The end of a rest
	// deletes its wake.
	Rest *Rest

	Enqueue []QueueRow
	Dequeue []string       // job ids; after Enqueue, so a job named in both does not wait
	Permits *PermitChanges // nil = none

	Externals *ExternalChanges // nil = none
	Approvals []ApprovalRow    // that begin or end; each at most once
}

// CheckpointDue reports whether a journal of so many bytes since the last snapshot, which had so
// many, is worth a checkpoint: then reading it takes longer than reading the state, and keeping one
// costs no more than the journal.
func CheckpointDue(journal, snapshot int) bool { return journal >= max(checkpointBytes, snapshot) }

const checkpointBytes = 64 << 10

// LargeSnapshot is from how many bytes on a snapshot should be a checkpoint: stores keep those in
// parts, and any other as a whole.
const LargeSnapshot = 1 << 20

// Create is what a task is from the beginning to its end.
type Create struct {
	FlowID, VersionID string
	Labels            map[string]string
	Params            []byte // JSON object
	BodyHash          string // of the start request, to tell a repeated one from another with the same key; may be ""
	CreatedAt         int64
}

// Columns are the columns of a task that listings show. U+FFFD stands in a text for what no
// database keeps in one: NUL and bytes that are not UTF-8.
type Columns struct {
	Status     string // flow.TaskStatus
	Cursor     string
	LastAction string
	Error      string
	Paused     bool
	Steps      int
	Followed   int // failed steps that the task went on after
	EndedAt    int64
	Waits      flow.WaitKinds // what it waits for, 0 = nothing; written with the events that begin or end a wait
	Wait       flow.Awaited   // the one that is told first, an approval before others; zero = none
}

// Rest reports whether a task is at rest: nobody need have it in memory, a due time or a message
// brings it back.
type Rest struct {
	Resting bool
	Due     int64 // of its wake; 0 = none
}

// Record is a task as stored.
type Record struct {
	TaskRow
	Snapshot    []byte // nil = none
	SnapshotSeq int64
	Rows        []Row // after SnapshotSeq
	Resting     bool
}

// Row is one commit of a task's journal.
type Row struct {
	Seq    int64
	At     int64
	Events []byte
}

// Part is how much of a journal is read at once: at most so many rows, and none behind so many
// bytes of events, so it takes no more memory than that and one row. The first row is always among
// them.
type Part struct{ Rows, Bytes int }

// Full reports whether there may be more behind the rows that were read.
func (p Part) Full(rows []Row) bool {
	bytes := 0
	for _, r := range rows {
		bytes += len(r.Events)
	}
	return len(rows) == p.Rows || bytes >= p.Bytes
}

// Wake is a task at rest and when it is due.
type Wake struct {
	Task string
	Due  int64
}

// Tasks is what listings read.
type Tasks interface {
	Task(ctx context.Context, id string) (*TaskRow, error)          // ErrNotFound
	ListTasks(ctx context.Context, f TaskFilter) ([]TaskRow, error) // without their params
	CountTasks(ctx context.Context, f TaskFilter) (int, error)      // ignores order and paging
	// CountTasksBy counts them by their status, or by something else. It ignores order and paging.
	// By status, where a filter asks for nothing but flows, states and times of creation, each
	// state in which tasks have ended is counted by itself up to Most, and those that have not
	// ended are together; whatever else is asked, so many tasks in all. A group of which there are
	// more, or may be, says so; one that has no task is missing.
	CountTasksBy(ctx context.Context, f TaskFilter, by By) (map[string]Group, error)
	// NewestOf tells the newest tasks of each of some flows, so many of each at most, the flows in
	// order of their ids.
	NewestOf(ctx context.Context, flows []string, each int) ([]TaskMark, error)
	// CountByShard counts the tasks that have not ended, in shards that have some. It looks at each
	// of them.
	CountByShard(ctx context.Context) (map[int]ShardTasks, error)
	// EndedBetween lists the tasks that ended from a time on and before another one, in the order
	// in which DeleteEnded deletes them.
	EndedBetween(ctx context.Context, from, before int64, limit int) ([]TaskEnd, error)
	// DeleteEnded deletes up to limit tasks that ended before a time, with everything of theirs.
	DeleteEnded(ctx context.Context, before int64, limit int) (int, error)
}

// TaskMark is a task as a dot in a row of them.
type TaskMark struct {
	Flow, ID, Status string
	CreatedAt        int64
}

// TaskEnd is when a task ended.
type TaskEnd struct {
	ID      string
	EndedAt int64
}

// ShardTasks are the tasks of a shard that have not ended.
type ShardTasks struct {
	Active  int // there is something to do for them: their owner has them in memory
	Resting int // they wait for a time, or for somebody
}

// With is with one more task.
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
	FlowName, FlowSlug    string // of the flow, when it exists
	VersionNumber         int
	Columns
	Labels    map[string]string
	Params    []byte
	BodyHash  string
	CreatedAt int64
	UpdatedAt int64 // At of the last commit with Create or Columns
}

// TaskFilter picks tasks. Zero fields do not filter.
type TaskFilter struct {
	FlowID, FlowSlug, VersionID string
	FlowIDs                     []string // any of them
	Version                     int      // number of their version
	IDPrefix                    string   // what their ids begin with
	Node                        string   // where their cursor is
	Failure                     string   // their error, as Failure tells it
	Text                        string   // that is in their error, in letters of either case, or what a label says, or what their id begins with
	Statuses                    []string
	Labels                      map[string]string // all must match
	CreatedFrom, CreatedTo      int64             // from inclusive, to exclusive
	EndedFrom, EndedTo          int64             // the same of their end, which they have
	LastedFrom, LastedTo        int64             // the same of the milliseconds from creation to end, which they have
	Paused                      *bool
	Waits                       flow.WaitKinds // for any of them
	Queued                      string         // a service: only tasks with jobs in its queue
	Before                      Spot           // only tasks behind this place in the order of the list; a task need not be there any more
	Through                     Spot           // only tasks at this place or before it in that order; not by update
	ByUpdate                    bool           // newest update first instead of newest creation first
	ByEnd                       bool           // newest end first: of those that have ended
	Oldest                      bool           // the oldest first instead; not by update
	Offset, Limit               int
	Most                        int // counting ends there; 0 = all are counted
}

// OfFlows says that the filter names flows.
func (f *TaskFilter) OfFlows() bool { return f.FlowID != "" || f.FlowSlug != "" || len(f.FlowIDs) > 0 }

// Indexed is the filter without the conditions that no index answers: each task that it picks has
// to be looked at for them. False: there are none. Whoever lists by such conditions bounds how many
// are looked at by Through.
func (f TaskFilter) Indexed() (wider TaskFilter, searches bool) {
	wider = f
	wider.Text, wider.Failure, wider.Node, wider.Version, wider.LastedFrom, wider.LastedTo = "", "", "", 0, 0, 0
	return wider, f.Text != "" || f.Failure != "" || f.Node != "" || f.Version > 0 || f.LastedFrom > 0 || f.LastedTo > 0
}

// Spot is where a task is among all of them in the order of a list.
type Spot struct {
	CreatedAt int64  // by end: when it ended
	ID        string // "" = nowhere
}

// By says what tasks are counted by.
type By struct {
	Flow  bool   // the id of their flow
	Label string // what a label of theirs says; "" = another. Those without it count as ""
}

// Group is how many tasks have something.
type Group struct {
	Count int
	More  bool // there are more, or may be
}

// Queue is the store's side of jobs that wait for pollers: rows made and ended by commits.
type Queue interface {
	// QueueRows lists waiting rows in order of (EnqueuedAt, Turn) after a position; services nil =
	// all.
	QueueRows(ctx context.Context, services []string, afterAt int64, afterTurn string, limit int) ([]QueueRow, error)
	// QueueFor lists waiting rows of a service in the same order that a poller of some kind may
	// have.
	QueueFor(ctx context.Context, f QueueFilter, afterAt int64, afterTurn string, limit int) ([]QueueRow, error)
	// QueueBefore counts the rows of the same service that are before a task's job, up to most.
	// ErrNotFound when it does not wait.
	QueueBefore(ctx context.Context, task, job string, most int) (int, error)
	// QueueServices lists the services that have waiting rows, in order of name.
	QueueServices(ctx context.Context) ([]string, error)
	// QueueDepth counts waiting rows and tells the oldest, by service.
	QueueDepth(ctx context.Context) (map[string]QueueStat, error)
}

// QueueRow is a job that waits for (or is held by) a poller.
type QueueRow struct {
	JobID, Task, Service string
	EnqueuedAt           int64
	Turn                 string   // orders jobs that were enqueued at the same time; ASCII
	Size                 int      // bytes that a poller is sent
	Labels               []string // that a poller must have, all of them; nil = none
}

// QueueFilter says which jobs of a service a poller may have.
type QueueFilter struct {
	Service string
	FlowID  string   // of the only flow that is meant; "" = all
	Labels  []string // that the poller has
}

// QueueStat is what metrics say of a service's queue.
type QueueStat struct {
	Waiting int
	Tasks   int // whose jobs they are
	Oldest  int64
}

// Flows keeps definitions.
type Flows interface {
	CreateFlow(ctx context.Context, f Flow) error // ErrDuplicate for a slug in use
	Flow(ctx context.Context, id string) (*Flow, error)
	FlowBySlug(ctx context.Context, slug string) (*Flow, error)
	// ListFlows: newest first, without those that are only tried; limit 0 = all.
	ListFlows(ctx context.Context, offset, limit int) ([]Flow, int, error)
	// ListTried: the flows that are only tried, of before a time, oldest first.
	ListTried(ctx context.Context, before int64, limit int) ([]Flow, error)
	// CreateVersion: number 0 = the highest of the flow plus 1; numbers may repeat. ErrNotFound
	// when there is no such flow.
	CreateVersion(ctx context.Context, v Version) error
	Version(ctx context.Context, id string) (*Version, error)
	// FindVersion: number 0 = the highest published one; of equal numbers the first created.
	FindVersion(ctx context.Context, flowID string, number int) (*Version, error)
	ListVersions(ctx context.Context, flowID string) ([]Version, error) // highest number first, without their definitions
	// DeleteFlow deletes up to limit tasks of a flow, the newest first, with everything of theirs,
	// whatever they are doing, and tells how many. With the last of them, which is when there were
	// fewer, the flow goes and its versions; no task of it begins after that. Its schedules go
	// first. ErrHeld when it has waited too long for transactions in which tasks of it begin.
	DeleteFlow(ctx context.Context, id string, limit int) (tasks int, err error)
}

// Flow is a named definition's identity.
type Flow struct {
	ID, Slug, Name, Description string // Slug may be ""
	CreatedAt                   int64
	Tried                       bool // it is for a task of a definition that was not published
}

// MaxVersion is the highest number that a version can have.
const MaxVersion = math.MaxInt32

// Version is one immutable state of a flow.
type Version struct {
	ID, FlowID string
	Number     int
	Definition []byte // JSON text as given (byte for byte)
	Status     string // "published" matters; free text
	Hash       string // of the definition, "" when not needed
	CreatedAt  int64
}

// Workers keeps the registry across restarts.
type Workers interface {
	PutWorker(ctx context.Context, w Worker) error // upsert by ID
	// TouchWorkers notes signs of life. Times only go forward: members may hear of one worker in
	// any order.
	TouchWorkers(ctx context.Context, beats []Heartbeat) error
	ListWorkers(ctx context.Context) ([]Worker, error) // in order of first registration
	DeleteWorker(ctx context.Context, id string) error // an unknown one is no error
	DeleteWorkers(ctx context.Context, silentSince int64) (int, error)
}

// Worker is a registered worker.
type Worker struct {
	ID, URL, Type string
	Services      []string
	Labels        []string // that it has, for jobs that ask for them; nil = none
	Secret        string   // that it wants with every call, and that is shown to nobody; "" = none
	Load          int
	LastHeartbeat int64
	RegisteredAt  int64 // first registration
	JoinedAt      int64 // last registration; 0 = not known
	PolledAt      int64 // when it last asked for jobs; 0 = not known
}

// Heartbeat is a sign of life.
type Heartbeat struct {
	ID   string
	Load int
	At   int64
	// PolledAt is when the worker last asked for jobs, if it has.
	PolledAt int64
}

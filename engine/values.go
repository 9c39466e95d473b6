package engine

import (
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// NewTask asks for a task of a version.
type NewTask struct {
	VersionID string
	// Newest says that VersionID is only the newest one at the moment: a request that is repeated
	// after another version was published still means the task it started.
	Newest bool
	Params json.RawMessage // JSON object, of a dag any JSON; nil = {}
	Labels map[string]string
	// Key makes starting idempotent: the same key for the same flow is the same task; with another
	// body it is a Conflict. "" = always a new task.
	Key string
	// ID is the task's own, a UUID that the caller chose: then it does what Key does, in all flows
	// at once.
	ID string
	// Request makes a start with a Key or an ID safe to send again: with the same one it is
	// answered as the one that created its task. Only members say it.
	Request string
	// Fork is the task whose history this one goes on from, as far as it is the same in the
	// version; see flow.PlanFork. ForkNode, if given, is the node that is done again with all that
	// follows. Without Params the new task has those of the other one.
	Fork, ForkNode string
	// Shared are values that it has in place of those of the other one, by their keys.
	Shared map[string]json.RawMessage
	// ForkRow is the last row of that history that counts; 0 = all do, and the task has to have
	// ended.
	ForkRow int64
	// Anew says that the task has nothing of the history of Fork, and begins at the beginning. That
	// one need not have ended.
	Anew bool
	// Task is the id that whoever may have to ask again has made for it with TaskID. Only members
	// say it.
	Task string
	// Traced says to which trace it belongs; nil = to the one that the context tells, or to its
	// own.
	Traced *flow.Traced
}

// Started answers a NewTask.
type Started struct {
	Task    string // its id
	Created bool   // false: a task with the same key or id had been started before
}

// Order is a command for a task.
type Order struct {
	Task    string
	Command flow.Command
	// Request makes the order safe to send again: with the same id it has no second effect. Named
	// makes one; "" = the member does, where it is needed, for what it repeats itself.
	Request string
	Events  bool // the outcome is to have them, not only how many there are
}

// Outcome is what an order came to.
type Outcome struct {
	// Changed is how many events the command led to at once. 0: it changed nothing, because it came
	// late, or again.
	Changed int
	Events  []flow.Event // these, if the order asks for them
	First   int          // index of the first unit of a flow.Append
	Job     *Claimed     // of a flow.Claim
	Given   int          // of a flow.Bring: how often the attempt had been given before it was given to the member that carries it now
	Held    int64        // of a flow.Claim that was refused: until when somebody else has the job, Unix milliseconds; 0 = nobody has
	Err     error        // why the order was refused; only in Outcomes
}

// Orders are commands for many tasks.
type Orders []Order

// Outcomes answer Orders, each in its place.
type Outcomes []Outcome

// Exchange is orders of one who wants jobs: those that wait, the oldest first, and those that begin
// by the orders.
type Exchange struct {
	Orders Orders
	Next   Poll // its Wait means nothing
}

// Exchanged answers it: each order in its place, and the jobs that were claimed.
type Exchanged struct {
	Outcomes Outcomes
	Jobs     Jobs
}

// Poll asks for queue jobs.
type Poll struct {
	Worker   string
	Services []string
	FlowID   string        // only jobs of this flow; "" = of all
	Labels   []string      // of the worker: jobs that ask for others are not for it
	Max      int           // jobs at most; 0 = 1
	Bytes    int           // of these at most, unless one alone has more; 0 = 8 MiB, and never more
	Wait     time.Duration // how long to wait for the first one; 0 = not at all
	// Unlisted says that a job which the poller gets as that begins is put into the queue only when
	// something is told of it, or it is returned.
	Unlisted bool
}

// Job is an attempt that a poller has to carry out.
type Job struct {
	Task string
	flow.Address
	Since      flow.Address // the unit of the visit that this one continues, which its key names; zero = its own
	Flow       string       // slug of the task's flow; "" when it has none
	Traced     *flow.Traced // of its task
	Service    string
	Labels     []string // that a worker has to have, sorted
	Input      json.RawMessage
	Params     json.RawMessage
	Run        json.RawMessage // what the task was started with
	ParamsKey  string          // names params that are too large to go along with each job of a step; then Params has none
	RunApart   bool            // Run does not go along either
	Branch     string          // the unit's name; "" for a plain executor
	Units      int             // of its step
	TimeoutMS  int64           // of the attempt; 0 = none
	EnqueuedAt int64           // Unix milliseconds
	Deliveries int             // how often a carrier was lost that had begun it
}

// ID names the job across tasks: another attempt has another one.
func (j *Job) ID() string { return flow.JobID(j.Task, j.Address) }

// Key is the job's idempotency key: the same for all attempts at its unit.
func (j *Job) Key() string {
	return (&flow.Job{Task: j.Task, Address: j.Address, Since: j.Since}).Key()
}

// JobOf is a job as pollers are told of it.
func JobOf(j *flow.Job) Job {
	known := Job{Task: j.Task, Address: j.Address, Since: j.Since, Traced: j.Traced, Service: j.Exec.Service, Labels: j.Exec.Labels, Input: j.Input, Params: j.Params, Run: j.Run,
		RunApart: j.RunApart(), Branch: j.Branch, Units: j.Units, TimeoutMS: j.TimeoutMS, EnqueuedAt: j.EnqueuedAt, Deliveries: j.Deliveries}
	if j.Plan != nil {
		known.Flow = j.Plan.FlowSlug
	}
	if j.ParamsApart() {
		known.ParamsKey, known.Params = j.ParamsKey(), nil
	}
	if known.RunApart {
		known.Run = nil
	}
	return known
}

// Claimed is a job in a poller's hands.
type Claimed struct {
	Job       Job
	Token     string // proves the claim
	ClaimedAt int64  // Unix milliseconds
	Until     int64
}

// Jobs answer a Poll.
type Jobs []Claimed

// Row is a part of a task's journal: what was stored at once.
type Row struct {
	Seq    int64
	At     int64  // Unix milliseconds
	Events []byte // as flow.DecodeEvents reads them
}

// Wait asks to be told when a task has ended, or Appears: that there is one. Waited answers it.
type Wait struct {
	Task    string
	Appears bool
}

// Waited answers a Wait.
type Waited struct{ Status flow.TaskStatus } // "" = the task has appeared

// Follow asks for the rows of a task's journal from one on, as it grows.
type Follow struct {
	Task  string
	After int64
}

// Offer is a job that pollers of other members may have.
type Offer struct {
	Job     string // its id
	Service string
	FlowID  string
	Labels  []string // that a poller needs
	At      int64    // when it was enqueued, Unix milliseconds
	Turn    string   // its place among those of the same time
	Size    int      // bytes that a poller is sent
}

// Offers tell another member of jobs.
type Offers []Offer

// Keys tell another member that something has changed about them: somebody asks for one, or lets
// go.
type Keys struct {
	Names []string
	Anew  bool // nobody knows who has heard what was decided about them
}

// News is what a member remembers otherwise that is told of it: it answers with empty News when it
// has taken note, if it is asked to.
type News struct {
	Flows   []string // ids of those that were published to, or deleted, or whose schedules changed
	Workers []Worker // that registered or went
	Beats   []Beat
}

// Beat is a worker's sign of life.
type Beat struct {
	ID      string
	Load    int
	HeardAt int64 // Unix milliseconds
}

// Worker is one of the registry. Times are in Unix milliseconds.
type Worker struct {
	ID, URL, Type, Secret string // the secret travels with registrations alone
	Services, Labels      []string
	Load                  int
	HeardAt               int64 // its last sign of life
	RegisteredAt          int64 // first registration
	JoinedAt              int64 // last registration
	Gone                  bool
}

// Errand is a job that another member is to have an attached worker carry out, or is to let go of.
// One that no attached worker gets that member has had from the start, or never: it is only to give
// it back if it does not know it.
type Errand struct {
	Job       Job // without Run; of a job that no attached worker gets only what names it
	Type      flow.ExecType
	Labels    []string // that a worker needs
	Given     int      // which time of its being given to a carrier this is
	Again     bool     // that it begins is to be stored first
	Withdrawn bool     // nobody waits for it any longer: of Job only what names it is there, and whatever carries it out lets go
	Unbegun   bool     // Withdrawn only if it has not begun: then it is given back
}

// Errands are for one member, in their order. The answer, Heard, says that they are its business
// from now on; what it makes of them is reported to whoever has the tasks. Each may be sent again.
type Errands []Errand

// Heard answers what has no other answer.
type Heard struct{}

// ErrandOf is a job as another member is given it.
func ErrandOf(j *flow.Job) Errand {
	if !j.Exec.Attachable() {
		return Errand{Job: Job{Task: j.Task, Address: j.Address}, Type: j.Exec.Type, Given: j.Given}
	}
	e := Errand{Job: JobOf(j), Type: j.Exec.Type, Labels: j.Exec.Labels, Given: j.Given, Again: j.Again}
	e.Job.Run, e.Job.RunApart, e.Job.ParamsKey = nil, false, ""
	return e
}

// ForRelay is the job as the member takes it that is to carry it out.
func (e *Errand) ForRelay() flow.Job {
	j := &e.Job
	return flow.Job{Task: j.Task, Address: j.Address, Since: j.Since, Exec: &flow.Exec{Type: e.Type, Service: j.Service, Labels: e.Labels}, Plan: &flow.Plan{FlowSlug: j.Flow}, Traced: j.Traced,
		Input: j.Input, Params: j.Params, Units: j.Units, Branch: j.Branch, TimeoutMS: j.TimeoutMS, EnqueuedAt: j.EnqueuedAt,
		Deliveries: j.Deliveries, Given: e.Given, Again: e.Again}
}

// Credit is what the workers attached to one member have who offer the same services and have the
// same labels.
type Credit struct {
	Services []string // sorted
	Labels   []string // sorted
	Workers  int      // how many there are; 0 = they have gone
	Free     int      // jobs that they take at the moment, beyond those they have
}

// Credits tell another member for which jobs the sender has attached workers, and how many more
// these take.
type Credits struct {
	Member string // incarnation of the sender
	Turn   int64  // of all that it tells, in order: what comes late means nothing
	Whole  bool   // who is not named has gone; else it is as it was
	List   []Credit
}

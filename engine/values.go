package engine

import (
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// NewTask requests a task of a version.
type NewTask struct {
	VersionID string
	// Newest reports that VersionID is only the newest version at the moment. Such a request means
	// the task that it started, even if it is repeated after another version was published.
	Newest bool
	Params json.RawMessage // JSON object, for a dag any JSON; nil = {}
	Labels map[string]string
	// Key makes the start idempotent: the same key for the same flow is the same task; with another
	// body it is a Conflict. "" = always a new task.
	Key string
	// ID is the task's id, a UUID chosen by the caller. It acts like Key, but across all flows.
	ID string
	// Request makes a start with a Key or an ID safe to repeat: with the same Request, the answer
	// reports again that the task was created. Only members set it.
	Request string
	// Fork is the task whose history this one continues, as far as the version allows; see
	// flow.PlanFork. ForkNode, if given, is the node that is repeated with all its successors.
	// Without Params, the new task has those of the other one.
	Fork, ForkNode string
	// Shared holds values of shared that replace those of the other task, by key.
	Shared map[string]json.RawMessage
	// Results holds values that replace recorded results of a function, by the places of its steps.
	Results map[string]json.RawMessage
	// ForkRow is the last row of the history that counts; 0 = all rows, and the other task must
	// have ended.
	ForkRow int64
	// Anew reports that the task takes nothing from the history of Fork, and starts at the
	// beginning. The other task need not have ended.
	Anew bool
	// Task is the id that TaskID returned to a caller that may have to repeat the request. Only
	// members set it.
	Task string
	// Traced is the trace that the task belongs to; nil = the trace of the context, or its own.
	Traced *flow.Traced
}

// Started answers a NewTask.
type Started struct {
	Task    string // its id
	Created bool   // false if a task with the same key or id was started before
}

// Order is a command for a task.
type Order struct {
	Task    string
	Command flow.Command
	// Request makes the order safe to repeat: with the same id it has no second effect. Named
	// creates one. If it is "", the member creates one where it repeats an order itself.
	Request string
	Events  bool // the outcome contains the events, not only their number
}

// Outcome is the result of an order.
type Outcome struct {
	// Changed is how many events the command caused at once; 0 = none, because it was late or
	// repeated.
	Changed int
	Events  []flow.Event // these events, if the order requests them
	First   int          // index of the first unit of a flow.Append
	Job     *Claimed     // job of a flow.Claim
	// for a flow.Bring: how often the attempt was dispatched before it went to its present member
	Given int
	// for a rejected flow.Claim: end of the other claim on the job, Unix milliseconds; 0 =
	// unclaimed
	Held int64
	Err  error // why the order was rejected; only in Outcomes
}

// Orders are commands for many tasks.
type Orders []Order

// Outcomes answer Orders, each in its place.
type Outcomes []Outcome

// Exchange carries orders of a poller that also wants jobs: waiting jobs, the oldest first, and
// jobs that the orders start.
type Exchange struct {
	Orders Orders
	Next   Poll // its Wait is ignored
}

// Exchanged answers an Exchange: the outcome of each order in its place, and the claimed jobs.
type Exchanged struct {
	Outcomes Outcomes
	Jobs     Jobs
}

// Poll requests jobs of the queue.
type Poll struct {
	Worker   string
	Services []string
	FlowID   string   // only jobs of this flow; "" = all flows
	Labels   []string // labels of the worker; it gets no job that requires other labels
	Max      int      // maximal number of jobs; 0 = 1
	// maximal size of the jobs, unless one alone is larger; 0 = 8 MiB, which is also the limit
	Bytes int
	Wait  time.Duration // how long to wait for the first job; 0 = not at all
	// Unlisted reports that a job which the poller gets as it starts enters the queue only later:
	// when something is reported about it, or when it is returned.
	Unlisted bool
}

// Job is an attempt that a poller carries out.
type Job struct {
	Task string
	flow.Address
	// unit of the earlier visit that this one continues, used in its key; nil = its own
	Since   *flow.Address
	Flow    string       // slug of the task's flow; "" if it has none
	Traced  *flow.Traced // trace of its task
	Service string
	Labels  []string // labels that a worker must have, sorted
	Input   json.RawMessage
	Params  json.RawMessage
	Run     json.RawMessage // the params that the task was started with
	// names params that are too large to send with each job of a step; Params is empty then
	ParamsKey  string
	RunApart   bool   // Run is not sent either
	Branch     string // name of the unit; "" for a plain executor
	Units      int    // number of units of its step
	TimeoutMS  int64  // timeout of the attempt; 0 = none
	EnqueuedAt int64  // Unix milliseconds
	Deliveries int    // how often a carrier was lost that had started it
}

// ID returns the job's id, which is unique across tasks; each attempt has its own.
func (j *Job) ID() string { return flow.JobID(j.Task, j.Address) }

// Key returns the job's idempotency key: the same for all attempts of its unit.
func (j *Job) Key() string {
	return (&flow.Job{Task: j.Task, Address: j.Address, Since: j.Since}).Key()
}

// JobOf returns the job in the form that pollers get.
func JobOf(j *flow.Job) Job {
	known := Job{Task: j.Task, Address: j.Address, Since: j.Since, Traced: j.Traced,
		Service: j.Exec.Service, Labels: j.Exec.Labels, Input: j.Input, Params: j.Params, Run: j.Run,
		RunApart: j.RunApart(), Branch: j.Branch, Units: j.Units, TimeoutMS: j.TimeoutMS,
		EnqueuedAt: j.EnqueuedAt, Deliveries: j.Deliveries}
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

// Claimed is a job that a poller holds.
type Claimed struct {
	Job       Job
	Token     string // proves the claim
	ClaimedAt int64  // Unix milliseconds
	Until     int64
}

// Jobs answer a Poll.
type Jobs []Claimed

// Row is a row of a task's journal: the events that were stored together.
type Row struct {
	Seq    int64
	At     int64  // Unix milliseconds
	Events []byte // in the format that flow.DecodeEvents reads
}

// Wait waits for the end of a task or, with Appears, for its existence. Waited answers it.
type Wait struct {
	Task    string
	Appears bool
}

// Waited answers a Wait.
type Waited struct{ Status flow.TaskStatus } // "" = the task exists

// Follow requests the rows of a task's journal after a row, as it grows.
type Follow struct {
	Task  string
	After int64
}

// Offer is a job that pollers of other members may claim.
type Offer struct {
	Job     string // its id
	Service string
	FlowID  string
	Labels  []string // labels that a poller needs
	At      int64    // time when it was enqueued, Unix milliseconds
	Turn    string   // its position among jobs of the same time
	Size    int      // bytes that a poller receives
}

// Offers announce jobs to another member.
type Offers []Offer

// Keys notify another member that concurrency keys changed: a permit was requested or released.
type Keys struct {
	Names []string
	Anew  bool // it is unknown which holders have received the decisions about the keys
}

// News reports changes to data that members cache. The receiver answers with empty News after it
// has applied them, if the sender waits for that.
type News struct {
	Flows   []string // ids of flows that were published to or deleted, or whose schedules changed
	Workers []Worker // workers that registered or left
	Beats   []Beat
}

// Beat is the heartbeat of a worker.
type Beat struct {
	ID      string
	Load    int
	HeardAt int64 // Unix milliseconds
}

// Worker is a worker of the registry. Times are in Unix milliseconds.
type Worker struct {
	ID, URL, Type, Secret string // the secret is sent only with registrations
	Services, Labels      []string
	Load                  int
	HeardAt               int64 // last heartbeat
	RegisteredAt          int64 // first registration
	JoinedAt              int64 // last registration
	Gone                  bool
}

// Errand asks another member to run a job on an attached worker, or to withdraw it. A job of a kind
// that attached workers do not run is at that member from the start or never: the member only gives
// it back if it does not know it.
type Errand struct {
	Job    Job // without Run; for a job that attached workers do not run, only its name
	Type   flow.ExecType
	Labels []string // labels that a worker needs
	Given  int      // delivery number: how often it was given to a carrier
	Again  bool     // its start must be stored first
	// no task waits for it any more: Job holds only its name, and the carrier drops it
	Withdrawn bool
	Unbegun   bool // Withdrawn applies only if it has not started; then it is given back
	// recorded ends of the waits of a function; it goes on
	Ended []flow.CodeStep
	// the function that a job calls, for a member whose workers have it
	Func     string
	Function *flow.FunctionCall
}

// WaitEnds returns the recorded ends of the waits of a function.
func (e *Errand) WaitEnds() []flow.CodeStep {
	if e.Function != nil {
		return e.Function.WaitEnds()
	}
	return e.Ended
}

// Bytes returns the size of the values.
func (e *Errand) Bytes() int {
	size, steps := len(e.Job.Input)+len(e.Job.Params), e.Ended
	if e.Function != nil {
		steps = e.Function.Steps
	}
	for i := range steps {
		size += len(steps[i].Output)
	}
	return size
}

// OnlyEnds reports whether the errand only brings the ends of waits to a job, whose name Job holds.
func (e *Errand) OnlyEnds() bool { return e.Type == "" && len(e.Ended) > 0 }

// Errands go to one member, in their order. The answer, Heard, means that the member is responsible
// for them from now on. It reports the results to the members that own the tasks. Each Errand may
// be repeated.
type Errands []Errand

// Heard acknowledges a message that has no other answer.
type Heard struct{}

// ErrandOf returns the errand for a job.
func ErrandOf(j *flow.Job) Errand {
	if !j.Exec.Attachable() && j.Function == nil {
		return Errand{Job: Job{Task: j.Task, Address: j.Address}, Type: j.Exec.Type, Given: j.Given}
	}
	e := Errand{Job: JobOf(j), Type: j.Exec.Type, Labels: j.Exec.Labels, Given: j.Given, Again: j.Again,
		Func: j.Exec.Func, Function: j.Function}
	e.Job.Run, e.Job.RunApart, e.Job.ParamsKey = nil, false, ""
	return e
}

// ForRelay returns the job in the form that the receiving member carries out.
func (e *Errand) ForRelay() flow.Job {
	j := &e.Job
	return flow.Job{Task: j.Task, Address: j.Address, Since: j.Since,
		Exec: &flow.Exec{Type: e.Type, Service: j.Service, Func: e.Func, Labels: e.Labels}, Function: e.Function,
		Plan: &flow.Plan{FlowSlug: j.Flow}, Traced: j.Traced,
		Input: j.Input, Params: j.Params, Units: j.Units, Branch: j.Branch, TimeoutMS: j.TimeoutMS, EnqueuedAt: j.EnqueuedAt,
		Deliveries: j.Deliveries, Given: e.Given, Again: e.Again}
}

// Credit sums up the attached workers of one member that offer the same services and have the same
// labels.
type Credit struct {
	Services []string // sorted
	Labels   []string // sorted
	Workers  int      // number of workers; 0 = all have gone
	Free     int      // number of further jobs that they accept now
}

// Credits report to another member the kinds of jobs for which the sender has attached workers, and
// their free capacity.
type Credits struct {
	Member string // incarnation of the sender
	Turn   int64  // sequence number of the sender's reports; a late one is ignored
	Whole  bool   // workers that are not listed have gone; otherwise they are unchanged
	List   []Credit
}

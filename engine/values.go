package engine

import (
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// NewTask requests a task of a version.
type NewTask struct {
	VersionID string
	// Newest is set if VersionID is only the newest version at the moment. A repeated request then
	// means the task that the first one started, even if a newer version was published since.
	Newest bool
	Params json.RawMessage // JSON object, for a dag any JSON; nil means {}
	Labels map[string]string
	// Key makes the start idempotent: the same key for the same flow means the same task. With
	// another body the result is a Conflict. If Key is "", each request starts a new task.
	Key string
	// ID is the task's id, a UUID chosen by the caller. It makes the start idempotent like Key, but
	// across all flows.
	ID string
	// Request makes a start with a Key or an ID safe to repeat. A repetition with the same Request
	// gets the same answer, with Created set. Only members set it.
	Request string
	// Fork is the task whose history the new task continues, as far as the version allows; see
	// flow.PlanFork. ForkNode, if given, is the node that is repeated with all later nodes. Without
	// Params, the new task has the params of Fork.
	Fork, ForkNode string
	// Shared holds, by key, values that replace shared values of Fork.
	Shared map[string]json.RawMessage
	// Results holds values that replace recorded results of a function, by the places of its steps.
	Results map[string]json.RawMessage
	// ForkRow is the last row of Fork's history that is used. 0 means all rows; Fork must have
	// ended then.
	ForkRow int64
	// Anew is set if the task starts at the beginning and takes nothing from the history of Fork.
	// Fork need not have ended then.
	Anew bool
	// Task is the id that TaskID returned to a caller that may have to repeat the request. Only
	// members set it.
	Task string
	// Traced is the trace that the task belongs to. If nil, the task uses the trace of the context,
	// else its own.
	Traced *flow.Traced
}

// Started answers a NewTask.
type Started struct {
	Task    string // id of the task
	Created bool   // false if a task with the same key or id was started before
}

// Order is a command for a task.
type Order struct {
	Task    string
	Command flow.Command
	// Request makes the order safe to repeat: an order with the same id has no second effect. Named
	// creates an id. If it is "", the member creates one before it repeats an order itself.
	Request string
	Events  bool // return the events in the outcome, not only their number
}

// Outcome is the result of an order.
type Outcome struct {
	// Changed is the number of events that the command caused at once. 0 means none, because the
	// command was late or repeated.
	Changed int
	Events  []flow.Event // the events of the command, if the order requests them
	First   int          // index of the first unit of a flow.Append
	Job     *Claimed     // job of a flow.Claim
	// Given is set for a flow.Bring: how often the attempt was dispatched before the present member
	// got it.
	Given int
	// Held is set for a rejected flow.Claim: the end of the other claim in Unix milliseconds; 0 if
	// unclaimed.
	Held int64
	Err  error // error of a rejected order; only in Outcomes
}

// Orders are commands for many tasks.
type Orders []Order

// Outcomes answer Orders; both have the same order.
type Outcomes []Outcome

// Exchange carries orders of a poller that also requests jobs. The poller gets waiting jobs, the
// oldest first, and jobs that the orders start.
type Exchange struct {
	Orders Orders
	Next   Poll // its Wait is ignored
}

// Exchanged answers an Exchange with the outcomes in the order of the orders, and the claimed jobs.
type Exchanged struct {
	Outcomes Outcomes
	Jobs     Jobs
}

// Poll requests jobs of the queue.
type Poll struct {
	Worker   string
	Services []string
	FlowID   string   // only jobs of this flow; "" for all flows
	Labels   []string // labels of the worker; a job that requires others is not returned
	Max      int      // maximal number of jobs; 0 = 1
	// Bytes is the maximum total size of the jobs, unless a single job is larger. 0 means 8 MiB,
	// the maximum.
	Bytes int
	Wait  time.Duration // how long to wait for the first job; 0 = not at all
	// Unlisted is set if jobs that start during the poll need not enter the queue at once. Such a
	// job enters the queue when it is reported on or returned.
	Unlisted bool
}

// Job is an attempt that a poller carries out.
type Job struct {
	Task string
	flow.Address
	// Since is the unit of the earlier visit that this visit continues; the key contains it. nil
	// means its own.
	Since   *flow.Address
	Flow    string       // slug of the task's flow; "" if the flow has none
	Traced  *flow.Traced // trace of the task
	Service string
	Labels  []string // labels that a worker must have, sorted
	Input   json.RawMessage
	Params  json.RawMessage
	Run     json.RawMessage // params that the task was started with
	// ParamsKey names params that are too large to send with each job of a step. Params is empty
	// then.
	ParamsKey  string
	RunApart   bool   // Run is too large to be sent, too
	Branch     string // name of the unit; "" for a plain executor
	Units      int    // number of units of its step
	TimeoutMS  int64  // timeout of the attempt; 0 = none
	EnqueuedAt int64  // Unix milliseconds
	Deliveries int    // number of carriers that were lost after they had begun the job
}

// ID returns the job's id, which is unique across tasks; each attempt has its own.
func (j *Job) ID() string { return flow.JobID(j.Task, j.Address) }

// Key returns the job's idempotency key, which is the same for all attempts of its unit.
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
	Token     string // secret that identifies the claim
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

// Wait waits for the end of a task. With Appears it waits until the task exists. The answer is a
// Waited.
type Wait struct {
	Task    string
	Appears bool
}

// Waited answers a Wait.
type Waited struct{ Status flow.TaskStatus } // "" if the Wait was for existence

// Follow requests the rows of a task's journal that follow a row, as they are stored.
type Follow struct {
	Task  string
	After int64
}

// Offer is a job that pollers of other members may claim.
type Offer struct {
	Job     string // id of the job
	Service string
	FlowID  string
	Labels  []string // labels that a poller needs
	At      int64    // time when the job was enqueued, in Unix milliseconds
	Turn    string   // position among jobs enqueued at the same time
	Size    int      // bytes that a poller receives
}

// Offers announce queue jobs to another member.
type Offers []Offer

// Keys notify another member that concurrency keys changed: a permit was requested or released.
type Keys struct {
	Names []string
	Anew  bool // the receivers of earlier decisions about the keys are unknown
}

// News reports changes to data that members cache. If the sender waits, the receiver answers with
// empty News after it has applied the changes.
type News struct {
	Flows   []string // flows whose versions or schedules changed, or that were deleted
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

// Errand asks another member to run a job on an attached worker, or to withdraw a job. A job that
// attached workers cannot run is either at that member already or lost. If the member does not know
// such a job, it returns the job.
type Errand struct {
	Job    Job // without Run; only the name of a job that attached workers do not run
	Type   flow.ExecType
	Labels []string // labels that a worker needs
	Given  int      // delivery number: earlier deliveries to carriers
	Again  bool     // the start of the job must be stored first
	// Withdrawn means that no task waits for the job any more. Job holds only its name, and the
	// carrier drops it.
	Withdrawn bool
	Unbegun   bool // withdraw the job only if it has not begun, and return it then
	// Ended holds recorded ends of waits of a function that continues.
	Ended []flow.CodeStep
	// Func is the function that the job calls, for a member whose workers have that function.
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

// Bytes returns the size of the errand's values in bytes.
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

// OnlyEnds reports whether the errand only transports ends of waits. Job then holds only the name
// of the job.
func (e *Errand) OnlyEnds() bool { return e.Type == "" && len(e.Ended) > 0 }

// Errands are sent to one member and handled in their order. The answer is Heard: from then on that
// member is responsible for the errands. It reports the results to the members that own the tasks.
// Each Errand may be repeated.
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

// ForRelay returns the job that the receiving member carries out.
func (e *Errand) ForRelay() flow.Job {
	j := &e.Job
	return flow.Job{Task: j.Task, Address: j.Address, Since: j.Since,
		Exec: &flow.Exec{Type: e.Type, Service: j.Service, Func: e.Func, Labels: e.Labels}, Function: e.Function,
		Plan: &flow.Plan{FlowSlug: j.Flow}, Traced: j.Traced,
		Input: j.Input, Params: j.Params, Units: j.Units, Branch: j.Branch, TimeoutMS: j.TimeoutMS, EnqueuedAt: j.EnqueuedAt,
		Deliveries: j.Deliveries, Given: e.Given, Again: e.Again}
}

// Credit describes a group of attached workers of one member that have the same services and
// labels.
type Credit struct {
	Services []string // sorted
	Labels   []string // sorted
	Workers  int      // number of workers; 0 if all have left
	Free     int      // number of further jobs that the group accepts now
}

// Credits report the groups of attached workers of the sender, and their free capacity, to another
// member.
type Credits struct {
	Member string // incarnation of the sender
	Turn   int64  // sequence number of the sender's reports; an older one is ignored
	Whole  bool   // groups that are not listed have left; otherwise they are unchanged
	List   []Credit
}

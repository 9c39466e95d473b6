package flow

import "encoding/json"

// Effect is what the world must do once the events before it are stored.
type Effect interface{ isEffect() }

type (
	// Dispatch asks for a job to be carried out. Who carries it already goes on.
	Dispatch struct{ Job Job }
	// Reclaim asks the carrier of a job to give it back unless it has begun with it: the task is
	// being canceled gently. The answer is a Report that is Lost and Unbegun. A carrier that has
	// begun goes on.
	Reclaim struct{ Job Job }
	// Over says that an attempt has ended by itself: nobody needs to remember its job.
	Over struct {
		Address
		Queue bool
		End   End // without an Exec it goes on outside
	}
	// Lost says that an attempt's carrier is gone, or has not been heard of for as long as its
	// claim was for.
	Lost struct {
		Address
		Exec    *Exec
		Expired bool // it was its claim that ran out
	}
	// Withdraw says that nobody wants an attempt any longer: its carrier should stop.
	Withdraw struct {
		Address
		Queue   bool
		Carrier string // incarnation of the member that carries it; "" for a queue job
		Given   int    // which time of its being given to a carrier is over
	}
	// Alarm asks to be rung at a time. An alarm whose reason is gone is ignored when it rings.
	Alarm struct {
		At int64
		Address
		Kind AlarmKind
	}
	// Spawn says that a step of many units or with a scope of its own has begun: somebody is to
	// carry it.
	Spawn struct{ Address }
	// Prune says that such a step is over, with everything below it.
	Prune struct{ Address }
	// Ended says that the task is over.
	Ended struct{ Status TaskStatus }
	// Ask asks for a permit. Granted answers it.
	Ask struct {
		Address // of an attempt, or, without a node, of the task itself
		Permit
		AskedAt int64
		Turn    string // among those who ask at the same time; see taskTurn and unitTurn
	}
	// Held says that a permit has arrived.
	Held struct {
		Address
		Key string
	}
	// Release says that a permit is not needed any longer, if it was given at all.
	Release struct {
		Address
		Key  string
		Used bool // of a rate: it does not make room for others
	}
)

// JobOf returns the job that an effect asks a carrier for, to carry it out or to give it back; nil
// for other effects.
func JobOf(e Effect) *Job {
	switch e := e.(type) {
	case Dispatch:
		return &e.Job
	case Reclaim:
		return &e.Job
	}
	return nil
}

// End is how an attempt ended, for those who count.
type End struct {
	Exec   *Exec
	Status AttemptStatus
	TookMS int64 // since it was started, or claimed
	Again  bool  // its unit is tried again
	// Metrics are numbers that were told of it, a list as in Report; also of one that goes on
	// outside, which has no Exec here.
	Metrics json.RawMessage
}

// AlarmKind says why an alarm was set.
type AlarmKind uint8

// Reasons for alarms.
const (
	AlarmTask      AlarmKind = iota + 1 // the task's timeout
	AlarmStep                           // a timer, a wait's timeout, a subflow's timeout
	AlarmEnter                          // a delayed step may be entered
	AlarmAttempt                        // the attempt's timeout
	AlarmClaim                          // the claim's expiry
	AlarmRetry                          // the unit may be tried again
	AlarmStart                          // a delayed step's units may be started
	AlarmUnclaimed                      // nobody has claimed the job
	AlarmReturn                         // workers whose member has gone are waited for no longer: Recover answers it
)

func (Dispatch) isEffect() {}
func (Reclaim) isEffect()  {}
func (Over) isEffect()     {}
func (Lost) isEffect()     {}
func (Withdraw) isEffect() {}
func (Alarm) isEffect()    {}
func (Spawn) isEffect()    {}
func (Prune) isEffect()    {}
func (Ended) isEffect()    {}
func (Ask) isEffect()      {}
func (Held) isEffect()     {}
func (Release) isEffect()  {}

// Job is an attempt that somebody has to carry out.
type Job struct {
	Task string
	Address
	Since      Address // the unit of the visit that this one continues, which its key names; zero = its own
	Exec       *Exec
	Plan       *Plan           // of its task
	Traced     *Traced         // of its task
	Run        json.RawMessage // what its task was started with
	Input      json.RawMessage
	Params     json.RawMessage
	Single     bool   // its step has this unit alone
	Units      int    // of its step
	PerItem    int    // how many of them each item has; 0 = one, or they are of no items
	Branch     string // the unit's name: a parallel's branch, an item's index; "" for a plain executor
	TimeoutMS  int64  // of the attempt; 0 = none
	EnqueuedAt int64
	Turn       string // of a queue job, among those enqueued at the same time; see unitTurn
	Until      int64  // of the claim; 0 = not claimed
	Carrier    string // incarnation of the member that carries it; "" for a queue job
	Deliveries int    // how often a carrier was lost that had begun it
	Given      int    // how often it was given to a carrier before
	Again      bool   // a member tells with Begin when it carries it out: it may be what its carriers die of, or is a program; of a queue job: it was returned
	Lacks      string // why what it works on cannot be had; "" = it is there
}

// maxInlineBytes is how many bytes of params, or of what the task was started with, go along with
// each job. What is larger a poller asks for once for all jobs of a step.
const maxInlineBytes = 4 << 10

// ParamsApart says that the params do not go along with the job.
func (j *Job) ParamsApart() bool { return j.sizeOf(j.Params) > maxInlineBytes }

// RunApart says that what the task was started with does not go along with the job. The jobs of a
// dag's plain steps always have it.
func (j *Job) RunApart() bool {
	plain := j.Single && j.Plan != nil && j.Plan.Root.Mode() == ModeDag
	return !plain && j.sizeOf(j.Run) > maxInlineBytes
}

// ParamsKey names the params: all jobs of a step have the same, but those that an item or branch
// has some of its own for, and those of programs with variables that are filled in.
func (j *Job) ParamsKey() string {
	a := j.Address
	a.Attempt = 0
	if j.Single || len(j.Exec.Params) == 0 && len(j.Exec.Vars) == 0 {
		a.Unit = 0
	}
	return JobID(j.Task, a)
}

// Size is about how many bytes whoever gets the job is sent.
func (j *Job) Size() int {
	size := j.sizeOf(j.Input)
	if !j.ParamsApart() {
		size += len(j.Params)
	}
	if !j.RunApart() {
		size += j.sizeOf(j.Run)
	}
	return size
}

// ID names the job across tasks: another attempt has another one.
func (j *Job) ID() string { return JobID(j.Task, j.Address) }

// Key is the job's idempotency key: the same for all attempts at its unit.
func (j *Job) Key() string { return UnitKey(j.Task, j.Since.orElse(j.Address)) }

// Key returns the idempotency key of an attempt of a task.
func (r *NodeRun) Key(task string) string { return UnitKey(task, r.Since.orElse(r.Address)) }

// orElse returns the address, or another one where it is none.
func (a Address) orElse(other Address) Address {
	if a == (Address{}) {
		return other
	}
	return a
}

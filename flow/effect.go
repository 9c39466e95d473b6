package flow

import (
	"encoding/json"
	"slices"
)

// Effect is an action that the caller must carry out after the preceding events are stored.
type Effect interface{ isEffect() }

type (
	// Dispatch asks a carrier to carry out a job. A carrier that already has the job continues with
	// it.
	Dispatch struct{ Job Job }
	// Reclaim asks the carrier of a job to return it if it has not begun, because the task is being
	// canceled gently. The answer is a Report with Lost and Unbegun. A carrier that has begun
	// continues.
	Reclaim struct{ Job Job }
	// Over reports that an attempt has ended by itself, so its job can be forgotten.
	Over struct {
		Address
		Queue bool
		End   End // without an Exec the attempt continues as external jobs
	}
	// Lost reports that the carrier of an attempt is gone, or has sent no sign of life for the
	// duration of its claim.
	Lost struct {
		Address
		Exec    *Exec
		Expired bool // the claim of the attempt has expired
	}
	// Withdraw cancels an attempt: its carrier should stop.
	Withdraw struct {
		Address
		Queue   bool
		Carrier string // incarnation of the carrying member; "" for a queue job
		Given   int    // number of the delivery to cancel
	}
	// WaitEnded sends the end of a wait to the carrier of a function whose other branches continue.
	WaitEnded struct {
		Address
		Carrier string // incarnation of the carrying member
		Given   int    // number of the delivery
		Step    CodeStep
	}
	// Alarm asks for a Ring at a given time. An alarm without a remaining reason is ignored when it
	// rings.
	Alarm struct {
		At int64
		Address
		Kind AlarmKind
	}
	// Spawn reports that a step with many units or with a scope of its own has begun, and needs an
	// actor.
	Spawn struct{ Address }
	// Prune reports that a step that was spawned is over, with everything below it.
	Prune struct{ Address }
	// Ended reports that the task is over.
	Ended struct{ Status TaskStatus }
	// Ask requests a permit. Granted is the answer.
	Ask struct {
		Address // address of an attempt; without a node the task itself
		Permit
		AskedAt int64
		Turn    string // order among requests of the same time; see taskTurn and unitTurn
	}
	// Held reports that a permit has arrived.
	Held struct {
		Address
		Key string
	}
	// Release returns a permit, or withdraws the request for it.
	Release struct {
		Address
		Key  string
		Used bool // the permit belonged to a rate, so its release makes no room
	}
)

// JobOf returns the job that an effect asks a carrier to carry out or to give back; nil for other
// effects.
func JobOf(e Effect) *Job {
	switch e := e.(type) {
	case Dispatch:
		return &e.Job
	case Reclaim:
		return &e.Job
	}
	return nil
}

// End describes how an attempt ended, for statistics.
type End struct {
	Exec   *Exec
	Status AttemptStatus
	TookMS int64 // time since its start or claim
	Again  bool  // the unit is retried after this attempt
	// Metrics is the list of measurements of the attempt, as in Report. It is also set for an
	// attempt that continues outside, which has no Exec here.
	Metrics json.RawMessage
}

// AlarmKind is the reason of an alarm.
type AlarmKind uint8

// Reasons of alarms.
const (
	AlarmTask      AlarmKind = iota + 1 // the task's timeout
	AlarmStep                           // a timer, a wait's timeout, a subflow's timeout
	AlarmEnter                          // a delayed step may begin
	AlarmAttempt                        // the attempt's timeout
	AlarmClaim                          // the claim's expiry
	AlarmRetry                          // the unit may be retried
	AlarmStart                          // the units of a delayed step may start
	AlarmUnclaimed                      // no worker has claimed the job
	// the wait for workers of lost members ends; Recover handles it
	AlarmReturn
)

func (Dispatch) isEffect()  {}
func (Reclaim) isEffect()   {}
func (Over) isEffect()      {}
func (Lost) isEffect()      {}
func (Withdraw) isEffect()  {}
func (WaitEnded) isEffect() {}
func (Alarm) isEffect()     {}
func (Spawn) isEffect()     {}
func (Prune) isEffect()     {}
func (Ended) isEffect()     {}
func (Ask) isEffect()       {}
func (Held) isEffect()      {}
func (Release) isEffect()   {}

// Job is an attempt to be carried out.
type Job struct {
	Task string
	Address
	// Since is the unit of the earlier visit that this visit continues; the key contains it. nil if
	// the visit continues none.
	Since   *Address
	Exec    *Exec
	Plan    *Plan           // plan of the task
	Traced  *Traced         // trace context of the task
	Run     json.RawMessage // params that the task was started with
	Input   json.RawMessage
	Params  json.RawMessage
	Single  bool // the step has only this unit
	Units   int  // number of units of the step
	PerItem int  // number of units per item; 0 means one, or that there are no items
	// Branch is the name of the unit: a branch of a parallel, or the index of an item; "" for a
	// plain executor.
	Branch     string
	TimeoutMS  int64 // timeout of the attempt; 0 if none
	EnqueuedAt int64
	Turn       string // for a queue job: order among jobs enqueued at the same time; see unitTurn
	Until      int64  // end of the claim; 0 if not claimed
	Carrier    string // incarnation of the carrying member; "" for a queue job
	Deliveries int    // number of carriers that were lost after they had begun the job
	Given      int    // number of earlier deliveries to a carrier
	// Again is set if the member must send Begin when it starts the job, because the job may kill
	// its carriers or is a program. For a queue job it means that the job was returned.
	Again    bool
	Lacks    string        // why values of the job are unavailable; "" if they are available
	Function *FunctionCall // set for a function that is a flow
}

// FunctionCall is the part of a Job that only functions that are flows have.
type FunctionCall struct {
	Steps  []CodeStep // recorded steps, in their order
	Undoes bool       // the function is called to undo its work
}

// WaitEnds returns the recorded ends of waits.
func (f *FunctionCall) WaitEnds() (ends []CodeStep) {
	if f == nil {
		return nil
	}
	for i := range f.Steps {
		if slices.Contains(waitKinds, f.Steps[i].Kind) {
			ends = append(ends, f.Steps[i])
		}
	}
	return ends
}

// maxInlineBytes is the maximum size of params, or of the task's params, that each job carries.
// Pollers fetch larger ones once for all jobs of a step.
const maxInlineBytes = 4 << 10

// ParamsApart reports whether the params must be fetched apart from the job.
func (j *Job) ParamsApart() bool { return j.sizeOf(j.Params) > maxInlineBytes }

// RunApart reports whether the task's params must be fetched apart from the job. The jobs of plain
// steps of a dag always carry them.
func (j *Job) RunApart() bool {
	plain := j.Single && j.Plan != nil && j.Plan.Root.Mode() == ModeDag
	return !plain && j.sizeOf(j.Run) > maxInlineBytes
}

// ParamsKey returns a key of the params. All jobs of a step share their params, with two
// exceptions: items or branches that have some of their own, and programs with variables.
func (j *Job) ParamsKey() string {
	a := j.Address
	a.Attempt = 0
	if j.Single || len(j.Exec.Params) == 0 && len(j.Exec.Vars) == 0 {
		a.Unit = 0
	}
	return JobID(j.Task, a)
}

// Size returns the approximate number of bytes sent to the carrier of the job.
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

// ID returns an id of the job that is unique across tasks and attempts.
func (j *Job) ID() string { return JobID(j.Task, j.Address) }

// Key returns the idempotency key of the job, which is the same for all attempts of its unit.
func (j *Job) Key() string { return UnitKey(j.Task, keyAddress(j.Since, j.Address)) }

// IDAndKey returns ID and Key. It costs little more than one of them.
func (j *Job) IDAndKey() (id, key string) {
	if j.Since != nil {
		return j.ID(), j.Key()
	}
	return jobIDAndUnitKey(j.Task, j.Address)
}

// Key returns the idempotency key of an attempt of a task.
func (r *NodeRun) Key(task string) string { return UnitKey(task, keyAddress(r.Since, r.Address)) }

// keyAddress returns the address in the key of a unit: that in the visit which its own visit
// continues, or its own if there is none.
func keyAddress(since *Address, own Address) Address {
	if since != nil {
		return *since
	}
	return own
}

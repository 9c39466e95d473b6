package flow

import "encoding/json"

// Effect is what the world must do once the events before it are stored.
type Effect interface{ effect() }

type (
	// Dispatch asks for a job to be carried out.
	Dispatch struct{ Job Job }
	// Over says that an attempt has ended by itself: nobody needs to remember its job.
	Over struct {
		Address
		Queue bool
	}
	// Withdraw says that nobody wants an attempt any longer: its carrier should stop.
	Withdraw struct {
		Address
		Queue bool
	}
	// Alarm asks to be rung at a time. An alarm whose reason is gone is ignored when it rings.
	Alarm struct {
		At int64
		Address
		Kind AlarmKind
	}
	// Spawn says that a step of many units or with a scope of its own has begun: somebody is to carry it.
	Spawn struct{ Address }
	// Prune says that such a step is over, with everything below it.
	Prune struct{ Address }
	// Ended says that the task is over.
	Ended struct{ Status TaskStatus }
)

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
)

func (Dispatch) effect() {}
func (Over) effect()     {}
func (Withdraw) effect() {}
func (Alarm) effect()    {}
func (Spawn) effect()    {}
func (Prune) effect()    {}
func (Ended) effect()    {}

// Job is an attempt that somebody has to carry out.
type Job struct {
	Task string
	Address
	Exec       *Exec
	Plan       *Plan           // of its task
	Run        json.RawMessage // what its task was started with
	Input      json.RawMessage
	Params     json.RawMessage
	Units      int    // of its step
	Branch     string // the unit's name: a parallel's branch, an item's index; "" for a plain executor
	TimeoutMS  int64  // of the attempt; 0 = none
	EnqueuedAt int64
	Turn       string // of a queue job, among those enqueued at the same time; see turn
	Until      int64  // of the claim; 0 = not claimed
	Carrier    string // incarnation of the member that carries it; "" for a queue job
	Deliveries int    // how often a carrier was lost that had begun it
	Again      bool   // it was returned: a member tells with Begin when it carries it out
}

// Size is about how many bytes whoever gets the job is sent.
func (j *Job) Size() int { return len(j.Input) + len(j.Params) + len(j.Run) }

// ID names the job across tasks.
func (j *Job) ID() string { return JobID(j.Task, j.Address) }

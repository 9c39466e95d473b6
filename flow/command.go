package flow

import "encoding/json"

// Command is a request to a task. Decide handles commands.
type Command interface{ isCommand() }

// Env holds the data that every decision needs from outside, because the core has no clock and no
// identity.
type Env struct {
	Now int64 // Unix milliseconds, by the clock of the store
	// Member is the incarnation of the deciding member, which becomes the carrier of dispatched
	// attempts.
	Member  string
	Request string // id of the request, "" if none; a repeated id has no second effect
	Limits  Limits
	Buffer  []Event // memory that the decision may use for its events
	// Most is the number of attempts after which the decision starts no more nodes of a dag.
	// Proceed starts the rest. 0 means no limit.
	Most int
	// Refer returns the replacement for a value that the decision has created: a reference, if the
	// value is large, or the value with a reference inside. The caller must store the referenced
	// content before the events. With nil all values stay unchanged.
	Refer func(v json.RawMessage) json.RawMessage
}

// Commands of users.
type (
	// Start starts a task of a plan. It is the first command of every task. With a Fork the task
	// continues the history of another task. With an Origin instead, it repeats that task from the
	// beginning.
	Start struct {
		Version string
		Params  json.RawMessage // an object, or nil
		Fork    *Fork           // nil to start from the beginning
		Origin  string          // "" if none
		Traced  *Traced         // nil if the task has a trace of its own
		Apart   bool            // see BegunApart

		checked bool // Fit has accepted the command
	}
	// Signal sets a key of the task's shared state and wakes the steps that wait for that key. A
	// task accepts signals after its end, too.
	//
	// If Alive is set, a task that has completed or was canceled rejects the signal. A failed task
	// accepts it, because a retry may read the signal.
	Signal struct {
		Key   string
		Value json.RawMessage
		By    string // sender, as given by itself; "" if not given
		Alive bool
	}
	// Answer decides one waiting approval and no other. An Action can replace the Value. If the
	// approval has a form, the Value has to fit it.
	Answer struct {
		Address
		Action  string
		Value   json.RawMessage
		By      string // author of the answer
		Comment string
	}
	// Cancel ends a task. It does nothing if the task has ended.
	//
	// If Gently is set, attempts that a carrier has begun go on, and all others are canceled at
	// once. With the pgflow profile queued attempts go on, too. Force also cuts compensations
	// short.
	Cancel struct{ Gently, Force bool }
	// RetryTask makes a failed task continue where it failed, also if it was paused at that time.
	// With the ork profile this also works for a canceled task. Completed work is not repeated.
	//
	// If Node is set (a node of the root, in dag mode), only this node is retried, with the nodes
	// that follow from it. Other failed nodes stay failed.
	RetryTask struct{ Node string }
	// HoldStep prevents one pending step of a dag from starting until ReleaseStep. The step is
	// still skipped when a dependency fails.
	HoldStep struct{ Address }
	// ReleaseStep reverts HoldStep.
	ReleaseStep struct{ Address }
	// Append adds units to a fanout that has begun. If a Route is given, it must be that of the
	// node.
	Append struct {
		Address // address of the step
		Items   []json.RawMessage
		Route   string
	}
	// Pause prevents new work from starting. Attempts in flight continue. The timeouts of the task,
	// and of steps that wait for a person, stop.
	Pause struct{}
	// Resume ends a Pause.
	Resume struct{}
)

// Commands of workers and other carriers of jobs.
type (
	// Claim gives a queue attempt to a poller until a given time. The Token identifies the claim: a
	// repetition with the same token changes nothing. Since is when the poller asked or registered,
	// whichever was later. It comes from the clock of another member, which may be slightly ahead.
	Claim struct {
		Address
		Worker, Token string
		Since         int64
		Until         int64
	}
	// Extend prolongs a claim. If a Token is given, it must be that of the holder. MS is the new
	// duration from now on, whatever the node declares. With MS = 0 it is the usual duration of a
	// claim, which ends at Until if the node declares none.
	Extend struct {
		Address
		Worker, Token string
		Until         int64
		MS            int64
	}
	// GiveBack returns a claimed attempt that the worker has not begun.
	GiveBack struct {
		Address
		Token string
	}
	// Note stores the worker's description of the state of its attempt. If a Token is given, it
	// must be that of the holder.
	Note struct {
		Address
		Token string
		Text  string
	}
	// Report ends an attempt. An empty Error means success. If a Token is sent, it must be that of
	// the claim; without one the first report wins. A report for an attempt that is over changes
	// nothing.
	Report struct {
		Address
		Output json.RawMessage
		Error  string
		// Details is additional data of the error: any JSON, stored with the attempt.
		Details json.RawMessage
		// Metrics is the program's list of measurements, stored with the attempt.
		Metrics     json.RawMessage
		Worker, URL string
		Token       string
		// Deferred lists external jobs that must end first, each with Service, ID and Data. Without
		// an Output, the outputs of these jobs become the output of the attempt.
		Deferred []External
		// GivenUp is set if the carrier of a function that is a flow returns the attempt before the
		// function ended.
		GivenUp  *GivenUp
		Fatal    bool // a retry cannot succeed
		TimedOut bool
		Log      bool
		// Poller is set for reports of outside workers, which can only end a queue attempt. Without
		// visit and attempt, the report ends the attempt that is currently held.
		Poller bool
		Direct bool // sent by a user: can only end a direct attempt
		// Lost means that the attempt is no longer carried out, because its carrier is gone. The
		// attempt does not end; it is dispatched again, a bounded number of times. Unbegun means
		// that the carrier had not begun, so no work is lost.
		//
		// Given is the delivery number that the report is about. The report is ignored if the
		// current delivery is another one, because then there is a newer carrier, or the same
		// report was handled before. To is the incarnation of the member that is to carry the
		// attempt out next; "" means the member that has the task.
		Lost, Unbegun bool
		Given         int
		To            string
	}
)

// Reports are several reports in one command. The effect is that of one report after the other,
// except that freed places are filled once at the end. A report that would be rejected changes
// nothing. A command holds at most MaxReports.
type Reports []Report

// MaxReports is the maximum number of reports per decision.
const MaxReports = 256

// Signs are the signs of life of a worker that reports for itself and not for each job. Times are
// Unix milliseconds; 0 means none.
type Signs struct {
	Heard  int64 // last contact with the worker
	Joined int64 // time of registration; jobs that the worker held before are lost
	Polled int64 // last request of the worker for jobs
}

// Return describes which jobs attached workers may bring to another member after their own member
// is gone.
type Return struct {
	Grace int64 // time to wait for these workers in milliseconds; 0 means no wait
	// Pushed lists the services that push workers offer. A push job of another service can only be
	// at an attached worker.
	Pushed []string
}

// Departure is the time when a member left, with its incarnation. Left is set after an orderly
// leave. Such a member has nothing in flight with push workers: it waited for those jobs or
// returned them.
type Departure struct {
	Member string
	At     int64
	Left   bool
}

// Commands of the member itself.
type (
	// Ring reports that an alarm is due.
	Ring struct{ Alarm }
	// Lapse is a Ring for the end of a claim. It adds the signs of life of the worker, and the
	// default duration of a claim for nodes that declare none.
	Lapse struct {
		Alarm
		Signs      Signs
		Visibility int64
	}
	// Proceed continues a decision that was cut because of its length. Waits is set if steps may
	// wait for values that are present.
	Proceed struct{ Waits bool }
	// Begin reports that the carrier, a member with the given incarnation, now carries out an
	// attempt whose job says Again. The loss of the carrier counts only after this.
	Begin struct {
		Address
		Carrier string
	}
	// Working reports that an attempt is now carried out elsewhere, although it was not when it was
	// handed over. This applies to an external job that was Pending, and to the worker of a program
	// that reports through files.
	//
	// At is the start time, by any clock. Nothing changes if the start is already known or no
	// attempt waits for it.
	Working struct {
		Address
		At int64
	}
	// Inquire asks whether the member with the given incarnation still is the carrier of an attempt
	// with delivery number Given. The answer ErrOver means no.
	Inquire struct {
		Address
		Carrier string
		Given   int
	}
	// Bring reports that the worker of an attempt has connected to another member. That member,
	// with the given incarnation, becomes the carrier. Given is the delivery number with which the
	// worker got the attempt. If that member is the carrier already, nothing changes.
	//
	// The result is a Conflict if the attempt was delivered to another carrier since. It is also a
	// Conflict if the attempt was not enqueued at Since: the worker's task was deleted, and this is
	// a new task with the same id.
	Bring struct {
		Address
		Carrier, Worker string
		Given           int
		Since           int64
	}
	// Leave returns the attempts that the stopping member has begun and will not finish, so nothing
	// is lost. Attempts that an attached worker continues stay as they are: those that it may
	// Return with, and those in Parted.
	Leave struct {
		Return
		Parted []Address
	}
	// Recover takes over the attempts of members that are gone. Attempts of the member itself, and
	// of members in Alive (by incarnation), go on unchanged. Decide never rejects it.
	//
	// - Since is when the present member got the task. Before that it could not receive heartbeats
	//   of claims, so a claim holds for another half of its duration from then. Visibility is that
	//   duration if the node declares none.
	// - Anew dispatches the jobs of members in Alive again, in case one of them does not know of a
	//   job.
	// - An attempt with which a worker may Return is left to it for the grace period after its
	//   member left; then an alarm rings. Gone holds the departures that this member has seen.
	Recover struct {
		Since, Visibility int64
		Alive             []string
		Anew              bool
		Return
		Gone []Departure
	}
	// Granted reports that the requester was given a permit, or, with Refused, that it never will
	// be. Without a node the requester is the task itself.
	Granted struct {
		Address
		Key     string
		Refused bool
	}
	// Evict ends the holder of a key, because another requester is to have its place.
	Evict struct {
		Address
		Key string
	}
	// FailStep ends a step that the engine cannot carry out. The error text begins with "internal".
	FailStep struct {
		Address
		Error string
	}
)

func (Start) isCommand()       {}
func (Signal) isCommand()      {}
func (Answer) isCommand()      {}
func (Cancel) isCommand()      {}
func (RetryTask) isCommand()   {}
func (HoldStep) isCommand()    {}
func (ReleaseStep) isCommand() {}
func (Append) isCommand()      {}
func (Pause) isCommand()       {}
func (Resume) isCommand()      {}
func (Claim) isCommand()       {}
func (Extend) isCommand()      {}
func (GiveBack) isCommand()    {}
func (Note) isCommand()        {}
func (Report) isCommand()      {}
func (Reports) isCommand()     {}
func (Ring) isCommand()        {}
func (Lapse) isCommand()       {}
func (Proceed) isCommand()     {}
func (Begin) isCommand()       {}
func (Working) isCommand()     {}
func (Inquire) isCommand()     {}
func (Bring) isCommand()       {}
func (Leave) isCommand()       {}
func (Recover) isCommand()     {}
func (Granted) isCommand()     {}
func (Evict) isCommand()       {}
func (FailStep) isCommand()    {}
func (RecordSteps) isCommand() {}

func (ReleaseFunction) isCommand() {}

// Decision is the result of Decide.
type Decision struct {
	Events  []Event
	Effects []Effect
	Tallies []Tally // counts of node outcomes that follow from the events
	Started int     // number of started attempts
	// Approvals are the approvals that open or close.
	Approvals []Approval
	Effort    int // work units that conditions and expressions used; see expr.Budget
	// More is the command that continues when one decision cannot hold all the work; nil if nothing
	// is left.
	More Command
}

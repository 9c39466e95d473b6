package flow

import "encoding/json"

// Command asks a task for something. Decide answers it.
type Command interface{ isCommand() }

// Env is what every command brings along, because the core has no clock and no name of its own.
type Env struct {
	Now     int64  // Unix milliseconds, the store's time
	Member  string // incarnation of the member that decides: it carries what it dispatches
	Request string // id of the request; the same id twice has one effect. "" = none
	Limits  Limits
	Buffer  []Event // memory that the decision's events may take
	Most    int     // attempts after which it begins no more nodes of a dag, which Proceed does then; 0 = any number
	// Refer gives what is to stand for a value that the decision has made: a reference, if it is
	// large, or one inside it. What that stands for is to be kept before the events are stored. nil
	// = all values stay as they are.
	Refer func(v json.RawMessage) json.RawMessage
}

// Commands of users.
type (
	// Start begins a task of a plan. It is the first command of every task. With a Fork it goes on
	// from the history of another one; with an Origin, in place of that, it does again what that
	// task does, from the beginning.
	Start struct {
		Version string
		Params  json.RawMessage // object, or nil
		Fork    *Fork           // nil = from the beginning
		Origin  string          // "" = none
		Traced  *Traced         // nil = it has a trace of its own
		Apart   bool            // see BegunApart

		checked bool // Fit has said so
	}
	// Signal sets a key of the task's shared state and wakes whoever waits for it. It is taken
	// after the end, too, unless it is Alive: then a task that has completed or was canceled
	// refuses it. One that has failed may be retried, and read it then.
	Signal struct {
		Key   string
		Value json.RawMessage
		By    string // who sends it, as it calls itself; "" = it does not say
		Alive bool
	}
	// Answer decides an approval that waits, and no other one. An Action stands for a value; with a
	// form the Value has to fit it.
	Answer struct {
		Address
		Action  string
		Value   json.RawMessage
		By      string // who answers
		Comment string
	}
	// Cancel ends a task. Canceling a task that has ended changes nothing. A gentle one lets what a
	// carrier has begun go on, and cancels anything else at once; with pgflow's profile what is
	// queued goes on, too. Force also cuts short what compensates.
	Cancel struct{ Gently, Force bool }
	// RetryTask has a failed task go on where it failed, also one that was paused then; with
	// profile ork one that was canceled, too. What completed is not done again. With a Node, of the
	// task's root in dag mode, only that one is tried again and what follows from it; what else
	// failed stays so.
	RetryTask struct{ Node string }
	// HoldStep keeps one step of a dag that has yet to begin from beginning, until ReleaseStep; it
	// is still skipped when what it depends on fails.
	HoldStep struct{ Address }
	// ReleaseStep undoes HoldStep.
	ReleaseStep struct{ Address }
	// Append adds units to a fanout that has begun. A Route, if given, must be the node's.
	Append struct {
		Address // of the step
		Items   []json.RawMessage
		Route   string
	}
	// Pause keeps anything new from starting; what is in flight goes on. The timeouts of the task
	// and of what waits for somebody stand still.
	Pause struct{}
	// Resume undoes Pause.
	Resume struct{}
)

// Commands of those who carry jobs.
type (
	// Claim gives a queue attempt to a poller until a time. Its Token tells it from any other
	// claim: the same one again changes nothing. Since is when its poller asked or registered,
	// whatever came last: by the clock of another member, which may be a little ahead.
	Claim struct {
		Address
		Worker, Token string
		Since         int64
		Until         int64
	}
	// Extend prolongs a claim. With a Token, only the holder's. MS is for how long, from now on,
	// whatever the node says; 0 = as long as a claim holds, which Until says if the node does not.
	Extend struct {
		Address
		Worker, Token string
		Until         int64
		MS            int64
	}
	// GiveBack returns a claimed attempt that nobody has begun to work on.
	GiveBack struct {
		Address
		Token string
	}
	// Note records what the worker calls the state of its attempt. With a Token, only the holder's.
	Note struct {
		Address
		Token string
		Text  string
	}
	// Report ends an attempt. Error "" means it went well. A Token, if sent, must be the claim's;
	// without one, the first report wins. A report about an attempt that is over changes nothing.
	Report struct {
		Address
		Output      json.RawMessage
		Error       string
		Details     json.RawMessage // what is told of the error beside its text: any JSON, kept with the attempt
		Metrics     json.RawMessage // numbers that its program has told, a list, kept with the attempt
		Worker, URL string
		Token       string
		Deferred    []External // what was begun outside and has to end first; of each its Service, ID and Data. With no Output theirs is that of the attempt
		Fatal       bool       // trying again is of no use
		TimedOut    bool
		Log         bool
		Poller      bool // it comes from a worker outside: only a queue attempt can be ended so; without visit and attempt the one held at the moment
		Direct      bool // it comes from a user: only a direct attempt can be ended so
		// Lost says that nobody carries the attempt out any longer: who had begun it is gone. It
		// ends nothing; the attempt is dispatched again, a bounded number of times. Unbegun says
		// that nobody had begun, so that nothing is lost. Given is which time of its being given to
		// a carrier this is about: about any other it means nothing, since somebody else has it, or
		// the same word was heard before. To is the member that is to carry it out next, by its
		// incarnation; "" = the one that has the task.
		Lost, Unbegun bool
		Given         int
		To            string
	}
)

// Reports are several at once. What follows from them is what would follow from one after the
// other, but the places they leave are filled once for all of them. One that would be refused
// changes nothing. There are at most MaxReports.
type Reports []Report

// MaxReports bounds how many reports one decision is about.
const MaxReports = 256

// Signs are what is known of the life of a worker that tells it of itself, not of each job, in Unix
// milliseconds; 0 = nothing.
type Signs struct {
	Heard  int64 // when it was last heard of
	Joined int64 // when it registered: what it had before that is gone
	Polled int64 // when it last asked for jobs
}

// Return is what is known of attached workers whose member has gone: with which jobs they may come
// to another one.
type Return struct {
	Grace  int64    // for how long they are waited for, in milliseconds; 0 = not at all
	Pushed []string // services that push workers offer: a job of type http of another one can only be with an attached worker
}

// Departure is when a member, by its incarnation, went. One that Left in order has nothing under
// way with push workers: it waited for that, or gave it back.
type Departure struct {
	Member string
	At     int64
	Left   bool
}

// Commands of the member itself.
type (
	// Ring says that the time of an alarm has come.
	Ring struct{ Alarm }
	// Lapse is Ring for the end of a claim, with the signs of life of its worker, and how long a
	// claim holds if its node says nothing.
	Lapse struct {
		Alarm
		Signs      Signs
		Visibility int64
	}
	// Proceed goes on with a decision that was cut because of its length. Waits says that steps may
	// wait for what is there.
	Proceed struct{ Waits bool }
	// Begin says that its carrier, the member of that incarnation, carries out an attempt now whose
	// job says Again. Only after that, the loss of the carrier counts.
	Begin struct {
		Address
		Carrier string
	}
	// Working says that somebody is at an attempt elsewhere who was not when it was given there: at
	// work outside that was Pending, or as the worker of a program that tells by files. At is since
	// when, by whatever clock. When that is known already, and of what nobody waits for, nothing
	// changes.
	Working struct {
		Address
		At int64
	}
	// Inquire asks for a member of that incarnation whether it still is the carrier of an attempt
	// that it was given, after the attempt had been given so many times before. ErrOver: nobody
	// waits for it there.
	Inquire struct {
		Address
		Carrier string
		Given   int
	}
	// Bring says that the worker which has an attempt has come to another member with it: that one,
	// by its incarnation, carries it from now on. Given is which time of its being given to a
	// carrier the worker got it. Of what that member carries already nothing changes; an attempt
	// that somebody else was given since is a Conflict, and so is one that was enqueued at another
	// time than Since: the task with the worker's was deleted, and there is another one with its
	// id.
	Bring struct {
		Address
		Carrier, Worker string
		Given           int
		Since           int64
	}
	// Leave returns what the member has begun and does not finish because it stops: nothing of it
	// is lost. What an attached worker goes on with stays as it is: what it may Return with, and
	// all that is Parted.
	Leave struct {
		Return
		Parted []Address
	}
	// Recover takes over what members that are gone were carrying; what the member itself carries,
	// or one of those who are Alive, by their incarnations, goes on as it is. Decide refuses
	// nothing here. Since is when the present member got the task: who held a claim could not be
	// heard before, so it holds for another half of its time, Visibility if its node says nothing,
	// from then. Anew has jobs dispatched once more that those carry who are Alive, lest one of
	// them does not know of it. What a worker may Return with is left to it for as long as that
	// takes since its member went, which Gone tells of those that this one has seen go; then an
	// alarm rings.
	Recover struct {
		Since, Visibility int64
		Alive             []string
		Anew              bool
		Return
		Gone []Departure
	}
	// Granted says that somebody was given what it asks for, or, Refused, that it will not be.
	// Without a node it is the task itself.
	Granted struct {
		Address
		Key     string
		Refused bool
	}
	// Evict ends somebody who holds a key, because another one is to have his place.
	Evict struct {
		Address
		Key string
	}
	// FailStep ends a step that the engine cannot carry out (reason `internal`).
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

// Decision is Decide's answer.
type Decision struct {
	Events  []Event
	Effects []Effect
	Tallies []Tally // what the events tell about nodes
	Started int     // attempts
	// Approvals are those that begin or end to wait for somebody.
	Approvals []Approval
	Effort    int // that conditions and expressions took, in units of work; see expr.Budget
	// More is the command that goes on: there is more to do than one decision may hold. nil =
	// nothing.
	More Command
}

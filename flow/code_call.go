package flow

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"sort"
	"strings"
)

// CodeJob is the job that a CodeCall waits for.
type CodeJob struct {
	Exec      ExecType // how the job reaches its carrier; one of callTypes
	Service   string
	Func      string // function of the service; for ChildTask the name of a flow
	Input     json.RawMessage
	Hash      string // hash of the input
	Retries   int    // number of further attempts after a failure
	PauseMS   int64  // pause before the first retry; each further pause is twice as long
	TimeoutMS int64  // timeout of an attempt; 0 for none
}

// callTypes are the types of jobs that a function may request.
var callTypes = []ExecType{ExecPush, ExecRemote, ExecQueue, ExecFunc, ExecExternal}

// waitIsOver is the error of a call that has not ended in time. The caller of the function turns
// exactly this text into its timeout error.
const waitIsOver = "the time of the wait is over"

// maxCallPauseMS is the maximum pause between two attempts of a call.
const maxCallPauseMS = 60_000

// checkCall rejects a call with an invalid job.
func (j *CodeJob) checkCall(l Limits) error {
	if j == nil {
		return Errorf(Invalid, "has no job")
	}
	if !slices.Contains(callTypes, j.Exec) {
		return Errorf(Invalid, "its job cannot travel as %.40q: write push, remote, queue, local_func or external", j.Exec)
	}
	if err := cmp.Or(CheckName("its service", j.Service), CheckName("its flow", j.Func)); err != nil {
		return err
	}
	switch {
	case j.Service == "":
		return Errorf(Invalid, "its service has no name")
	case (j.Service == ChildTask) != (j.Func != ""):
		return Errorf(Invalid, "only a job of %s names a flow, and must", ChildTask)
	case len(j.Hash) > MaxName || !IsText(j.Hash):
		return Errorf(Invalid, "the hash of its input is none")
	case j.Retries < 0 || j.Retries > math.MaxInt32/2:
		return Errorf(Invalid, "it has %d retries", j.Retries)
	case j.PauseMS < 0 || j.TimeoutMS < 0:
		return Errorf(Invalid, "it has a negative time")
	}
	return l.checkValue("its input", j.Input)
}

// callNode returns the node of a call. The plan has no such node.
func callNode(name string, params json.RawMessage, p *waitParams) *PlanNode {
	return &PlanNode{Key: name, Kind: KindExecutor, Single: true, Params: params, TimeoutMS: p.JobTimeoutMS,
		Exec:  Exec{Type: p.Exec, Service: p.Service, Func: cmp.Or(p.Func, p.Service)},
		Retry: Retry{Max: p.Tries + p.Retries, WaitMS: p.PauseMS, Exponential: true, MaxWaitMS: maxCallPauseMS, Units: true}}
}

// isCall reports whether a step is a call of a function.
func (st *Step) isCall() bool {
	return st.scope.Plan.Code && st.Key != CodeMain && st.Node.Kind == KindExecutor
}

// firstAttempt returns the number of the first attempt of a unit. A repeated call continues the
// numbers of its earlier attempts, because reports about those may still arrive.
func (st *Step) firstAttempt() int {
	if !st.isCall() {
		return 1
	}
	return st.waitOf().Tries + 1
}

// retryDelay returns the delay after a failed attempt of a unit in milliseconds.
func (st *Step) retryDelay(task string, a Address) int64 {
	a.Attempt -= st.firstAttempt() - 1
	return st.Node.Retry.backoffMS(task, a)
}

// endCall records the result of a call.
func endCall(d *decider, st *Step) {
	how := stepOutcome{output: st.Units[0].Output}
	if st.Units[0].Status == UnitFailed {
		how = stepOutcome{failed: cmp.Or(st.Units[0].Error.Text, "failed")}
	}
	d.stepPart().finishStep(st, how)
}

// withdrawCalls withdraws the jobs of the calls whose names begin with the given place.
func withdrawCalls(d *decider, sc *Scope, place string) {
	for _, st := range sc.Function.Waits {
		if strings.HasPrefix(st.Key, place) {
			d.attemptPart().withdrawStep(st)
		}
	}
}

// cancelCalls cancels the jobs of all calls, because the function will not continue after them.
func cancelCalls(d *decider, sc *Scope) {
	for _, st := range sc.Function.Waits {
		for i := range st.Units {
			if u := &st.Units[i]; u.Live != nil {
				a := st.Address()
				a.Unit, a.Attempt = i, int(u.Attempt)
				d.taskPart().cancelAttempt(st, u, a)
			}
		}
	}
}

// noteTries stores the number of attempts of a call that ends without a result. A retried task that
// repeats the call continues from that number.
func (sc *Scope) noteTries(st *Step) {
	if st.isCall() {
		sc.setTries(&CodeStep{Name: st.Key, Use: st.Visit, Tries: st.lastAttempt()})
	}
}

// lastAttempt returns the number of the newest attempt of a call.
func (st *Step) lastAttempt() int { return max(int(st.Units[0].Attempt), st.waitOf().Tries) }

// noteRecordedTries stores the number of attempts of a recorded call that is removed; see
// noteTries.
func (sc *Scope) noteRecordedTries(s *CodeStep) {
	if s.Kind == CodeCall {
		sc.setTries(s)
	}
}

func (sc *Scope) setTries(s *CodeStep) {
	if s.Tries == 0 {
		return
	}
	if sc.Function.Tries == nil {
		sc.Function.Tries = map[string]int{}
	}
	sc.Function.Tries[s.Place()] = s.Tries
}

// enteredUses returns how many steps of a function have had a name. It returns math.MaxInt for a
// name from before the last restart.
func (sc *Scope) enteredUses(name string) int {
	for _, st := range sc.Function.Waits {
		if st.Key == name {
			return st.Visit
		}
	}
	known := func(use int) bool { return sc.Function.index.places[codePlace{name: name, use: use}] }
	most := 1
	for known(most) {
		most *= 2
	}
	if n := sort.Search(most, func(i int) bool { return !known(i + 1) }); n > 0 {
		return n
	}
	if restartNumber(name) < sc.Visits[CodeMain] {
		return math.MaxInt
	}
	return 0
}

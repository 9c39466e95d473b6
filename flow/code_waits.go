package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// onlyWaits reports whether the carrier has returned the function until one of its waits ends.
func (sc *Scope) onlyWaits() bool {
	return sc.Step != nil && len(sc.Step.Units) == 1 && sc.Step.Units[0].Live != nil && sc.Step.Units[0].Live.Held == HeldWaiting
}

// HeldWaiting is the reason for holding a function that only waits. The function is delivered again
// when one of its waits ends.
const HeldWaiting = "it waits"

// CodeWait is a wait that a function requests. The end of the wait becomes a recorded step.
type CodeWait struct {
	Name string // as in CodeStep
	Use  int
	Kind CodeKind
	Key  string // key of shared whose signal or answer ends the wait
	MS   int64  // duration of a sleep, or timeout of a signal or an approval; 0 for none
	// Question is set for CodeApproval: the form of QuestionParams, with values to show.
	Question json.RawMessage

	Tries int    // CodeRetry: number of tries so far
	Error string // CodeRetry: error of the last try

	Job *CodeJob // CodeCall: job to wait for; nil for other kinds
}

// waitParams are the params of a wait's step. waitNode builds the node from them.
type waitParams struct {
	Wait      CodeKind `json:"wait"`
	Signal    string   `json:"signal_key,omitempty"`
	Approval  string   `json:"approval_key,omitempty"`
	Title     string   `json:"title,omitempty"`
	TimeoutMS int64    `json:"timeout_ms,omitempty"`
	Tries     int      `json:"tries,omitempty"` // call: number of attempts before this wait
	Error     string   `json:"error,omitempty"`

	// The following fields are set for calls.
	Exec         ExecType `json:"exec_type,omitempty"`
	Service      string   `json:"service,omitempty"`
	Func         string   `json:"func,omitempty"`
	Hash         string   `json:"hash,omitempty"`
	Retries      int      `json:"retries,omitempty"`
	PauseMS      int64    `json:"pause_ms,omitempty"`
	JobTimeoutMS int64    `json:"job_timeout_ms,omitempty"`
}

func (p waitParams) encodeParams() json.RawMessage {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err) // texts and numbers can always be encoded
	}
	return raw
}

func (w *CodeWait) stepParams() waitParams {
	p := waitParams{Wait: w.Kind, TimeoutMS: w.MS, Tries: w.Tries, Error: truncateText(w.Error, maxErrorText)}
	switch w.Kind {
	case CodeSignal:
		p.Signal = w.Key
	case CodeApproval:
		p.Approval, p.Title = w.Key, TrimRestartPrefix(w.Name)
	case CodeCall:
		j := w.Job
		p.Exec, p.Service, p.Func, p.Hash = j.Exec, j.Service, j.Func, j.Hash
		p.Retries, p.PauseMS, p.JobTimeoutMS = j.Retries, j.PauseMS, j.TimeoutMS
	}
	return p
}

// nodeParams returns the params of the node of the wait.
func (w *CodeWait) nodeParams() json.RawMessage {
	params := w.stepParams().encodeParams()
	if len(w.Question) == 0 {
		return params
	}
	return expr.Merge(w.Question, params)
}

// valueBytes returns the size of the question or the input of a wait.
func (w *CodeWait) valueBytes() int {
	if w.Job != nil {
		return len(w.Job.Input)
	}
	return len(w.Question)
}

// waitBytes returns the size of the questions and inputs of waits.
func waitBytes(waits []CodeWait) (sum int) {
	for i := range waits {
		sum += waits[i].valueBytes()
	}
	return sum
}

// Bytes returns the size of the questions and inputs that the function waits with; 0 for nil.
func (g *GivenUp) Bytes() int {
	if g == nil {
		return 0
	}
	return waitBytes(g.Waits)
}

// checkContent rejects a question that cannot be shown, and a call with an invalid job.
func (w *CodeWait) checkContent(l Limits) error {
	if w.Kind == CodeCall {
		return w.Job.checkCall(l)
	}
	if w.Job != nil {
		return fmt.Errorf("a wait of kind %s has no job", w.Kind)
	}
	if len(w.Question) == 0 {
		return nil
	}
	if err := l.checkValue("its question", w.Question); err != nil {
		return err
	}
	if kind := expr.KindOf(w.Question); kind != expr.KindObject {
		return fmt.Errorf("its question must be an object, is %s", kind)
	}
	if _, faults := ReadQuestion(w.Question); len(faults) > 0 {
		return fmt.Errorf("its question: %s: %s", strings.Join(faults[0].Path, "."), faults[0].Msg)
	}
	return nil
}

// waitNode returns the node of a wait. The plan has no such node.
func waitNode(name string, params json.RawMessage) *PlanNode {
	var p waitParams
	_ = json.Unmarshal(params, &p) // for a damaged journal the node is a timer
	n := &PlanNode{Key: name, Kind: KindTimer, Params: params, TimeoutMS: p.TimeoutMS}
	switch p.Wait {
	case CodeRetry:
		n.Exec.Type = ExecCode
	case CodeSignal:
		n.Kind = KindWaitEvent
	case CodeApproval:
		n.Kind = KindApproval
	case CodeCall:
		return callNode(name, params, &p)
	}
	return n
}

// waitOf returns the params of the step of a wait.
func (st *Step) waitOf() (p waitParams) {
	_ = json.Unmarshal(st.Params, &p) // as in waitNode
	return p
}

// holdWaiting begins the waits of a function and takes it from its carrier. If one of the waits has
// ended meanwhile, the function is delivered again at once.
func holdWaiting(d *decider, st *Step, u *Unit, c Report) error {
	sc, waits := st.scope, c.GivenUp.Waits
	err := checkWaits(d, sc, waits)
	if len(waits) == 0 {
		err = Errorf(Invalid, "a function was given up, but waits for nothing")
	}
	if err != nil {
		return d.attemptPart().settleResult(st, u, Report{Address: c.Address, Error: err.Error(), Fatal: true, Given: c.Given})
	}
	held := st.newEvent(AttemptHeld)
	held.Unit, held.Attempt, held.Error = c.Unit, c.Attempt, HeldWaiting
	ended := slices.ContainsFunc(waits, func(w CodeWait) bool {
		return sc.Function.index.places[w.codePlace()] || sc.Function.index.isDecided(w.Name)
	})
	if ended && d.s.Paused() {
		held.Error = HeldPaused
	}
	d.emitEvent(held)
	beginWaits(d, sc, waits)
	if ended {
		goOnBehindWait(d, sc)
	}
	return nil
}

// beginWaits begins the waits that are neither active nor over. Ends that are already recorded are
// sent to the carrier again, because it may not know them. If the task is being canceled, no wait
// begins and the function stops.
func beginWaits(d *decider, sc *Scope, waits []CodeWait) {
	if len(waits) == 0 {
		return
	}
	active := sc.activeUses(waits)
	for i := range waits {
		w := &waits[i]
		switch {
		case sc.Function.index.places[w.codePlace()]:
			d.informCarrier(sc, sc.recordedStep(w.codePlace()))
		case sc.Function.index.isDecided(w.Name) || d.s.isCanceling():
		case active[w.Name] != w.Use:
			active[w.Name] = w.Use
			beginWait(d, sc, w)
		}
	}
}

// isDecided reports whether a name belongs to a branch of a race that already has its winner.
func (c *codeIndex) isDecided(name string) bool {
	for i := 0; len(c.races) > 0 && i < len(name); i++ {
		if name[i] == '/' && c.races[name[:i]] {
			return true
		}
	}
	return false
}

func (w *CodeWait) codePlace() codePlace {
	return (&CodeStep{Name: w.Name, Use: w.Use, Kind: w.Kind, Tries: w.Tries}).codePlace()
}

// checkWaits rejects waits that cannot begin: invalid ones, or too many.
func checkWaits(d *decider, sc *Scope, waits []CodeWait) error {
	if len(waits) == 0 {
		return nil
	}
	active, fresh, size := sc.activeUses(waits), 0, 0
	for i := range waits {
		w := &waits[i]
		name := TrimRestartPrefix(w.Name)
		if err := CheckName("the name of a wait", name); err != nil {
			return err
		}
		switch {
		case w.Name == CodeMain:
			return Errorf(Invalid, "a wait cannot have the name %s, which is that of the function: choose another one", CodeMain)
		case w.Use < 1 || !slices.Contains(waitKinds, w.Kind):
			return Errorf(Invalid, "the wait %s is asked for in a form that this member does not know", name)
		case active[w.Name] != 0 && active[w.Name] != w.Use:
			return Errorf(Invalid, "the function already waits for %s: give each wait of its branches a name of its own", name)
		case w.Key != "":
			if err := checkWaitKey(w.Key); err != nil {
				return Errorf(Invalid, "the wait %s: %v", name, err)
			}
		}
		if active[w.Name] == 0 {
			size += w.valueBytes()
			if err := w.checkContent(d.limits); err != nil {
				return Errorf(Invalid, "the wait %s: %v", name, err)
			}
		}
		if active[w.Name] == 0 && !sc.Function.index.places[w.codePlace()] {
			fresh++
		}
		active[w.Name] = w.Use
	}
	if fresh > MaxReports {
		return Errorf(Limit, "limit: the function begins %d waits at once, more than the %d it may", fresh, MaxReports)
	}
	for _, st := range sc.Function.Waits {
		size += len(st.Params) + len(st.Input)
	}
	if size > d.limits.Shared {
		return Errorf(Limit, "limit: the open questions and calls of the function would have %d bytes together, more than "+
			"the limit of %d; give less to each, or ask and call for fewer at once", size, d.limits.Shared)
	}
	return checkStepNumber(d, sc, fresh)
}

// activeUses returns the use of the active wait for each name; 0 if no wait with that name is
// active.
func (sc *Scope) activeUses(waits []CodeWait) map[string]int {
	uses := make(map[string]int, len(waits))
	for i := range waits {
		uses[waits[i].Name] = 0
	}
	for _, st := range sc.Function.Waits {
		if _, asked := uses[st.Key]; asked {
			uses[st.Key] = st.Visit
		}
	}
	return uses
}

// beginWait begins a wait. The wait ends at once if its time has passed or its signal is stored.
func beginWait(d *decider, sc *Scope, w *CodeWait) {
	e := Event{Type: WaitStarted, Scope: sc.Path, Node: w.Name, Visit: w.Use, Action: string(w.Kind)}
	if w.Kind == CodeCall {
		w.Tries, e.Input = sc.Function.Tries[(&CodeStep{Name: w.Name, Use: w.Use}).Place()], orNull(w.Job.Input)
	}
	e.Params = w.nodeParams()
	times := w.Kind == CodeSleep || w.Kind == CodeRetry
	if times || w.MS > 0 {
		e.Due = d.timeAfter(w.MS)
	}
	d.emitEvent(e)
	st := d.s.activeStep(e.Address())
	switch {
	case times && e.Due <= d.env.Now:
		d.stepPart().handleStepDue(st)
		return
	case e.Due > 0:
		d.effects = append(d.effects, Alarm{At: e.Due, Address: st.Address(), Kind: AlarmStep})
	}
	switch {
	case w.Kind == CodeCall:
		d.queueStep(st)
	case !times:
		d.stepPart().wakeStep(st)
	}
}

// applyWaitStarted makes a wait of a function active.
func (s evolveState) applyWaitStarted(e *Event) {
	sc := s.scopes[e.Scope]
	if sc == nil || !sc.Plan.Code {
		return
	}
	st := &Step{Key: e.Node, Node: waitNode(e.Node, e.Params), Visit: e.Visit, EnteredAt: e.At, Due: e.Due,
		Params: e.Params, Input: e.Input, scope: sc}
	if st.isCall() {
		st.Units, st.Initial = make([]Unit, 1), 1
		st.unfoldUnits()
	}
	sc.Function.Waits = append(sc.Function.Waits, st)
	s.addWaiting(st)
	s.takeSignal(st)
}

// withdrawWaits ends the waits whose names begin with the given place. No results are recorded.
func (s evolveState) withdrawWaits(sc *Scope, place string, at int64) {
	sc.Function.Waits = slices.Clone(sc.Function.Waits)
	sc.Function.Waits = slices.DeleteFunc(sc.Function.Waits, func(st *Step) bool {
		withdrawn := strings.HasPrefix(st.Key, place)
		if withdrawn {
			s.forgetStep(st, at)
		}
		return withdrawn
	})
}

// endWait records the result of a wait. Then it delivers the function again, or informs the carrier
// that has the function.
func endWait(d *decider, st *Step, how stepOutcome) {
	sc, p := st.scope, st.waitOf()
	e := Event{Type: StepRecorded, Scope: sc.Path, Node: st.Key, Visit: st.Visit, Action: string(p.Wait),
		InputRef: p.Hash, Output: how.output, Error: truncateText(how.failed, maxErrorText), Total: p.Tries, Until: st.EnteredAt}
	if st.isCall() {
		e.Total = st.lastAttempt()
		if how.failed != "" && st.Units[0].Status == UnitFailed {
			e.Details = st.errorDetails()
		}
	}
	d.emitEvent(e)
	d.informCarrier(sc, sc.Function.Steps[len(sc.Function.Steps)-1])
	goOnBehindWait(d, sc)
}

// informCarrier sends the end of a wait to the carrier of a function whose other branches continue.
func (d *decider) informCarrier(sc *Scope, ended CodeStep) {
	st := sc.Step
	if st == nil || len(st.Units) != 1 || st.Units[0].Live == nil {
		return
	}
	if u := &st.Units[0]; u.Live.Held == "" && u.Live.Carrier != "" {
		a := st.Address()
		a.Attempt = int(u.Attempt)
		d.effects = append(d.effects, WaitEnded{Address: a, Carrier: u.Live.Carrier, Given: u.Live.Given, Step: ended})
	}
}

// goOnBehindWait delivers a function again that was held until a wait ends.
func goOnBehindWait(d *decider, sc *Scope) {
	if !sc.onlyWaits() || d.s.codeStops() {
		return
	}
	st := sc.Step
	e := st.newEvent(AttemptRequeued)
	e.Attempt, e.Carrier, e.Total, e.Reason = int(st.Units[0].Attempt), d.env.Member, st.Units[0].Live.Deliveries, ReasonWaited
	d.emitEvent(e)
}

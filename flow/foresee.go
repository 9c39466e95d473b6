package flow

import (
	"cmp"
	"crypto/sha256"
)

// Foresight is the predicted course of a task that is not started. Steps that need no worker are
// decided. Work that was done before with the same input has its recorded result. Everything else
// stays open, with all steps that depend on it.
type Foresight struct {
	Steps  []Foreseen // in the order in which they would begin
	Status TaskStatus // predicted final status; "" if that depends on open steps
	More   bool       // the prediction was cut
}

// Foreseen is a step that the task would reach.
type Foreseen struct {
	Address
	How     ForeseenHow
	Service string  // target of the calls; see Exec
	Calls   int     // number of units to call
	Next    string  // next node of a step in graph mode
	Output  Glimpse // recorded output, for a step with one unit
}

// ForeseenHow is the predicted course of a step.
type ForeseenHow string

// Values of ForeseenHow.
const (
	ForeseenDecided  ForeseenHow = "decided"  // it ends without a call
	ForeseenRecorded ForeseenHow = "recorded" // its work was done before with the same input
	ForeseenCalled   ForeseenHow = "called"   // a worker or service would be called
	ForeseenWaits    ForeseenHow = "waits"    // for a signal, an approval, or steps inside it
	ForeseenSkipped  ForeseenHow = "skipped"
)

// Limits of a prediction.
const (
	foreseenSteps     = 1000
	foreseenDecisions = 2000
)

// Foresee predicts the course of a task and carries nothing out. known is the history of a task of
// the same flow, and old is the plan of that task. A recorded result is used where a node does the
// same work with the same input.
func Foresee(plan *Plan, start Start, known []Event, old *Plan, env Env) (Foresight, error) {
	f := &foreseer{env: env, plan: plan, s: NewState("foreseen", plan), known: findRecorded(known, old), stepIndex: map[Address]int{}}
	shared := 0
	if start.Fork != nil {
		shared = len(start.Fork.Events)
	}
	if err := f.decideCommand(start, 1+shared); err != nil {
		return Foresight{}, err
	}
	f.playTask()
	if f.s.Status.Ended() {
		f.foresight.Status = f.s.Status
	}
	return f.foresight, nil
}

// workKey identifies the work of an attempt: its node and input.
type workKey struct {
	path  string
	input [sha256.Size]byte
}

// recordedWork is the result of an attempt.
type recordedWork struct {
	scope  *PlanScope
	node   *PlanNode
	output []byte
}

func workKeyOf(j *Job) workKey {
	h := sha256.New()
	for _, part := range [][]byte{j.Input, {0}, j.Params} {
		h.Write(part)
	}
	d := workKey{path: j.Step()}
	h.Sum(d.input[:0])
	return d
}

// findRecorded collects the results of attempts in a history. Work that waited for external jobs is
// not included.
func findRecorded(history []Event, plan *Plan) map[workKey]recordedWork {
	s, known := NewState("known", plan), map[workKey]recordedWork{}
	for i := range history {
		e := &history[i]
		if e.Type == AttemptEnded && e.Status == string(AttemptOK) {
			if j, ok := s.Job(e.Address()); ok {
				scope := plan.ScopeOf(j.Scope)
				if n := scope.Nodes[j.Node]; !n.Deferred {
					known[workKeyOf(&j)] = recordedWork{scope, n, e.Output}
				}
			}
		}
		Evolve(s, e)
	}
	return known
}

// foreseer runs a task in memory to predict its course.
type foreseer struct {
	env       Env
	plan      *Plan
	s         *State
	known     map[workKey]recordedWork
	foresight Foresight
	stepIndex map[Address]int // index of each step in foresight.Steps
	jobs      []Job
	asked     []Ask
	alarms    []Alarm
	decisions int // number of decisions so far
}

// decideCommand decides a command and its continuations. The first skip events belong to another
// task.
func (f *foreseer) decideCommand(c Command, skip int) error {
	for c != nil {
		if f.decisions++; f.decisions > foreseenDecisions || f.foresight.More {
			f.foresight.More = true
			return nil
		}
		d, err := Decide(f.s, c, f.env)
		if err != nil {
			return err
		}
		for i := min(skip, len(d.Events)); i < len(d.Events); i++ {
			f.noteStep(&d.Events[i])
		}
		for _, e := range d.Effects {
			switch e := e.(type) {
			case Dispatch:
				f.jobs = append(f.jobs, e.Job)
			case Ask:
				f.asked = append(f.asked, e)
			case Alarm:
				f.alarms = append(f.alarms, e)
			}
		}
		c, skip = d.More, 0
	}
	return nil
}

// playTask continues until no recorded work is left. Rejected commands are ignored, because the
// task no longer needs them.
func (f *foreseer) playTask() {
	for !f.s.Status.Ended() && !f.foresight.More {
		switch {
		case len(f.asked) > 0: // a task that runs alone gets every permit
			a := f.asked[0]
			f.asked = f.asked[1:]
			_ = f.decideCommand(Granted{Address: a.Address, Key: a.Key}, 0)
		case len(f.jobs) > 0:
			j := f.jobs[0]
			f.jobs = f.jobs[1:]
			f.answerJob(&j)
		case !f.fireNextAlarm():
			return
		}
	}
}

// answerJob answers a job with its recorded result, or leaves it open.
func (f *foreseer) answerJob(j *Job) {
	step := f.foreseenStep(j.Address)
	if step == nil {
		return
	}
	m, ok := f.known[workKeyOf(j)]
	scope := f.plan.ScopeOf(j.Scope)
	if !ok || !sameWork(m.scope, m.node, scope, scope.Nodes[j.Node]) {
		step.How, step.Service, step.Output = ForeseenCalled, cmp.Or(j.Exec.Service, j.Exec.Func, string(j.Exec.Type)), Glimpse{}
		step.Calls++
		return
	}
	if step.How != ForeseenCalled {
		step.How = ForeseenRecorded
		if j.Single {
			step.Output = f.plan.Root.glimpseOf(m.output)
		}
	}
	r := Report{Address: j.Address, Output: m.output}
	if j.Exec.Type == ExecQueue {
		r.Token, r.Poller = "foreseen", true
		if f.decideCommand(Claim{Address: j.Address, Worker: "foreseen", Token: r.Token, Until: f.env.Now + 1000}, 0) != nil {
			return
		}
	}
	_ = f.decideCommand(r, 0)
}

// fireNextAlarm advances the clock to the first alarm that depends on time alone. It returns false
// if there is none.
func (f *foreseer) fireNextAlarm() bool {
	first := -1
	for i, a := range f.alarms {
		if f.needsOnlyTime(a) && (first < 0 || a.At < f.alarms[first].At) {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	a := f.alarms[first]
	f.alarms = append(f.alarms[:first], f.alarms[first+1:]...)
	f.env.Now = max(f.env.Now, a.At)
	_ = f.decideCommand(Ring{a}, 0)
	return true
}

// needsOnlyTime reports whether the alarm depends on time alone, and not on a carrier.
func (f *foreseer) needsOnlyTime(a Alarm) bool {
	switch a.Kind {
	case AlarmEnter, AlarmStart:
		return true
	case AlarmStep:
		st := f.s.activeStep(Address{Scope: a.Scope, Node: a.Node, Visit: a.Visit})
		return st != nil && st.Node.Kind == KindTimer
	}
	return false
}

// noteStep records the course of a step.
func (f *foreseer) noteStep(e *Event) {
	if e.Type != StepEntered && e.Type != StepEnded {
		return
	}
	step := f.foreseenStep(e.stepAddress())
	if step == nil || e.Type == StepEntered {
		return
	}
	step.Next = e.Next
	switch {
	case e.Status == string(StepSkipped):
		step.How = ForeseenSkipped
	case step.How == ForeseenWaits:
		step.How = ForeseenDecided
	}
}

// foreseenStep returns the prediction of a step and adds it if needed. It returns nil if there are
// too many steps.
func (f *foreseer) foreseenStep(a Address) *Foreseen {
	a.Unit, a.Attempt = 0, 0
	i, ok := f.stepIndex[a]
	if !ok {
		if f.foresight.More = f.foresight.More || len(f.foresight.Steps) == foreseenSteps; f.foresight.More {
			return nil
		}
		i, f.stepIndex[a] = len(f.foresight.Steps), len(f.foresight.Steps)
		f.foresight.Steps = append(f.foresight.Steps, Foreseen{Address: a, How: ForeseenWaits})
	}
	return &f.foresight.Steps[i]
}

package flow

import (
	"cmp"
	"crypto/sha256"
)

// Foresight is what a task would do that is not started. What needs nobody is decided, what was
// done before with the same input came to what is recorded, and what nobody can know is left open,
// with all that waits for it.
type Foresight struct {
	Steps  []Foreseen // in the order in which they would begin
	Status TaskStatus // that it would end with; "" = that depends on what is open
	More   bool       // there is more than was looked at
}

// Foreseen is a step that it would come to.
type Foreseen struct {
	Address
	How     ForeseenHow
	Service string  // who would be called; see Exec
	Calls   int     // for how many units
	Next    string  // where a step of a graph leads
	Output  Glimpse // that is recorded, of a step with one unit
}

// ForeseenHow says what would become of a step.
type ForeseenHow string

// What would become of it.
const (
	ForeseenDecided  ForeseenHow = "decided"  // it ends without anybody
	ForeseenRecorded ForeseenHow = "recorded" // its work was done before with the same input
	ForeseenCalled   ForeseenHow = "called"   // somebody would be called
	ForeseenWaits    ForeseenHow = "waits"    // for a signal, an approval, or what goes on inside of it
	ForeseenSkipped  ForeseenHow = "skipped"
)

// Bounds of what is looked at.
const (
	foreseenSteps     = 1000
	foreseenDecisions = 2000
)

// Foresee says what a task would do, and carries nothing out. Known is the history of a task of the
// same flow, with its plan: what it did counts where a node does the same with the same input.
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

// workKey is what an attempt did: of a node, with an input.
type workKey struct {
	path  string
	input [sha256.Size]byte
}

// recordedWork is what came of it.
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

// findRecorded finds what attempts came to. What waited for work outside is not among it.
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

// foreseer plays a task.
type foreseer struct {
	env       Env
	plan      *Plan
	s         *State
	known     map[workKey]recordedWork
	foresight Foresight
	stepIndex map[Address]int // steps in told
	jobs      []Job
	asked     []Ask
	alarms    []Alarm
	decisions int // decisions
}

// decideCommand decides a command. The first events are of another task.
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

// playTask goes on until nothing is left that is known. What is refused has become pointless
// meanwhile.
func (f *foreseer) playTask() {
	for !f.s.Status.Ended() && !f.foresight.More {
		switch {
		case len(f.asked) > 0: // one task alone gets whatever it asks for
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

// answerJob answers a job with what is recorded, or leaves it open.
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

// fireNextAlarm lets the time pass that something waits for which nothing else ends: it is false
// when there is none.
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

// needsOnlyTime says that nothing but time is waited for.
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

// noteStep notes what becomes of a step.
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

// foreseenStep is what is told of a step; nil when there are too many.
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

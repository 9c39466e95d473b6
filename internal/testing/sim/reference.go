package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// taskOutcome is the part of a task's end that must not depend on the order of events.
type taskOutcome struct {
	Status flow.TaskStatus
	Error  string
	Shared string // without signals and the last undone value
	Steps  int
	Visits string
}

func outcomeOf(s *flow.State, signals map[string]json.RawMessage) taskOutcome {
	shared := map[string]json.RawMessage{}
	maps.Copy(shared, s.Root.Shared)
	for key := range signals {
		delete(shared, key)
	}
	delete(shared, undoneKey) // with several units in flight, the last undone unit is random
	visits, _ := json.Marshal(s.Root.Visits)
	out, _ := json.Marshal(shared)
	text, _, _ := strings.Cut(s.Error, panicText) // a stack trace follows
	text, _, _ = strings.Cut(text, refusedText)
	return taskOutcome{Status: s.Status, Error: text, Shared: string(out), Steps: s.Steps, Visits: string(visits)}
}

// referenceRun drives a task by the core alone. Jobs are carried out in order, and time advances
// when nothing else can happen.
type referenceRun struct {
	state  *flow.State
	env    flow.Env
	jobs   []flow.Job
	alarms []flow.Alarm
	asks   []flow.Ask
	reruns *rerunWatcher
}

// referenceOutcome returns how a task must end.
func referenceOutcome(p *flowScenario, plan *flow.Plan, limits flow.Limits) (taskOutcome, error) {
	s, err := runReference(p, plan, limits)
	if err != nil {
		return taskOutcome{}, err
	}
	return outcomeOf(s, p.signals), nil
}

// runReference runs a scenario by the core alone.
func runReference(p *flowScenario, plan *flow.Plan, limits flow.Limits) (*flow.State, error) {
	r := &referenceRun{state: flow.NewState("reference", plan),
		env: flow.Env{Now: 1, Member: "reference", Limits: limits}, reruns: newAgain(plan)}
	if err := r.applyCommand(flow.Start{Version: "v", Params: p.params}); err != nil {
		return nil, err
	}
	signals, again, appended := slices.Sorted(maps.Keys(p.signals)), p.again, map[string]bool{}
	for !r.state.Status.Ended() || again && r.state.Status == flow.TaskFailed {
		var next flow.Command
		units := directUnits(r.state)
		switch {
		case r.state.Status.Ended():
			again, next = false, flow.RetryTask{}
		case len(r.asks) > 0:
			next = flow.Granted{Address: r.asks[0].Address, Key: r.asks[0].Key}
			r.asks = r.asks[1:]
		case len(r.jobs) > 0:
			r.carryOut()
		case len(signals) > 0:
			next = flow.Signal{Key: signals[0], Value: p.signals[signals[0]]}
			signals = signals[1:]
		case len(units) > 0:
			next = p.finishCommand(units[0], appended)
		case len(p.awaitedSignals(r.state)) > 0:
			key := p.awaitedSignals(r.state)[0]
			next = flow.Signal{Key: key, Value: p.signals[key]}
		case len(r.alarms) > 0:
			r.ringAlarm()
		default:
			return nil, fmt.Errorf("the core alone is stuck: %v", flow.Waiting(r.state))
		}
		if next == nil {
			continue
		}
		if err := r.applyCommand(next); err != nil {
			return nil, err
		}
	}
	if did, bad := r.reruns.inVain(); bad {
		return nil, fmt.Errorf("the core alone did %+v again, which was done", did)
	}
	return r.state, nil
}

// awaitedSignals returns the keys of sent signals that steps await again, because each visit takes
// another signal.
func (p *flowScenario) awaitedSignals(s *flow.State) (keys []string) {
	var look func(sc *flow.Scope)
	look = func(sc *flow.Scope) {
		for _, st := range sc.Active() {
			if key := st.AwaitedKey(); len(p.signals[key]) > 0 && st.Signal == nil {
				keys = append(keys, key)
			}
			if st.Child != nil {
				look(st.Child)
			}
		}
	}
	if !s.Status.Ended() {
		look(s.Root)
		if s.Closing != nil {
			look(s.Closing.Scope)
		}
	}
	return keys
}

func (r *referenceRun) applyCommand(c flow.Command) error {
	for c != nil {
		d, err := flow.Decide(r.state, c, r.env)
		if err != nil {
			return err
		}
		for i := range d.Events {
			r.reruns.noteEvent(&d.Events[i])
		}
		for _, e := range d.Effects {
			switch e := e.(type) {
			case flow.Dispatch:
				r.jobs = append(r.jobs, e.Job)
			case flow.Ask:
				r.asks = append(r.asks, e)
			case flow.Alarm:
				r.alarms = append(r.alarms, e)
			}
		}
		c = d.More
	}
	return nil
}

func (r *referenceRun) carryOut() {
	job := r.jobs[0]
	r.jobs = r.jobs[1:]
	if job.Exec.Service == hang || job.Exec.Func == hang {
		return
	}
	report := serveJob(job)
	if strings.Contains(string(report.Output), poison) {
		report = flow.Report{Address: job.Address, Fatal: true, Error: refusedText}
	}
	_ = r.applyCommand(report) // a report about a canceled job changes nothing
}

// refusedText is the beginning of the error of an attempt whose result the store refuses. The
// store's own text follows.
const refusedText = "internal: the store refused the attempt's result"

// ringAlarm fires the alarm that is due first.
func (r *referenceRun) ringAlarm() {
	first := 0
	for i, a := range r.alarms {
		if a.At < r.alarms[first].At {
			first = i
		}
	}
	a := r.alarms[first]
	r.alarms = slices.Delete(r.alarms, first, first+1)
	r.env.Now = max(r.env.Now, a.At)
	_ = r.applyCommand(flow.Ring{Alarm: a})
}

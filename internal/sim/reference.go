package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// outcome is what must be the same however a task got there.
type outcome struct {
	Status flow.TaskStatus
	Error  string
	Shared string // without what was signaled, and what was undone last
	Steps  int
	Visits string
}

func outcomeOf(s *flow.State, signals map[string]json.RawMessage) outcome {
	shared := map[string]json.RawMessage{}
	maps.Copy(shared, s.Root.Shared)
	for key := range signals {
		delete(shared, key)
	}
	delete(shared, undoneKey) // of units that were in flight together, any may be the last one
	visits, _ := json.Marshal(s.Root.Visits)
	out, _ := json.Marshal(shared)
	text, _, _ := strings.Cut(s.Error, panicText) // a stack follows
	text, _, _ = strings.Cut(text, refusedText)
	return outcome{Status: s.Status, Error: text, Shared: string(out), Steps: s.Steps, Visits: string(visits)}
}

// reference drives a task by the core alone: jobs are carried out in order, and time passes when
// nothing else can happen.
type reference struct {
	state  *flow.State
	env    flow.Env
	jobs   []flow.Job
	alarms []flow.Alarm
	asks   []flow.Ask
	again  *again
}

// refer says how a task must end.
func refer(p *play, plan *flow.Plan, limits flow.Limits) (outcome, error) {
	s, err := alone(p, plan, limits)
	if err != nil {
		return outcome{}, err
	}
	return outcomeOf(s, p.signals), nil
}

// alone plays a task by the core alone.
func alone(p *play, plan *flow.Plan, limits flow.Limits) (*flow.State, error) {
	r := &reference{state: flow.NewState("reference", plan), env: flow.Env{Now: 1, Member: "reference", Limits: limits}, again: newAgain(plan)}
	if err := r.do(flow.Start{Version: "v", Params: p.params}); err != nil {
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
			next = p.finish(units[0], appended)
		case len(p.unheard(r.state)) > 0:
			key := p.unheard(r.state)[0]
			next = flow.Signal{Key: key, Value: p.signals[key]}
		case len(r.alarms) > 0:
			r.ring()
		default:
			return nil, fmt.Errorf("the core alone is stuck: %v", flow.Waiting(r.state))
		}
		if next == nil {
			continue
		}
		if err := r.do(next); err != nil {
			return nil, err
		}
	}
	if did, bad := r.again.inVain(); bad {
		return nil, fmt.Errorf("the core alone did %+v again, which was done", did)
	}
	return r.state, nil
}

// unheard returns the keys of signals that were sent and that steps wait for again: each visit takes another one.
func (p *play) unheard(s *flow.State) (keys []string) {
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

func (r *reference) do(c flow.Command) error {
	for c != nil {
		d, err := flow.Decide(r.state, c, r.env)
		if err != nil {
			return err
		}
		for i := range d.Events {
			r.again.event(&d.Events[i])
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

func (r *reference) carryOut() {
	job := r.jobs[0]
	r.jobs = r.jobs[1:]
	if job.Exec.Service == hang || job.Exec.Func == hang {
		return
	}
	report := serve(job)
	if strings.Contains(string(report.Output), poison) {
		report = flow.Report{Address: job.Address, Fatal: true, Error: refusedText}
	}
	_ = r.do(report) // one about a job that nobody wants any longer changes nothing
}

// refusedText is what the error of an attempt begins with whose result the store refuses. What
// follows is the store's.
const refusedText = "internal: the store refused the attempt's result"

// ring rings the alarm that is due first.
func (r *reference) ring() {
	first := 0
	for i, a := range r.alarms {
		if a.At < r.alarms[first].At {
			first = i
		}
	}
	a := r.alarms[first]
	r.alarms = slices.Delete(r.alarms, first, first+1)
	r.env.Now = max(r.env.Now, a.At)
	_ = r.do(flow.Ring{Alarm: a})
}

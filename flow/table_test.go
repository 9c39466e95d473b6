package flow_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// epoch is the start time of every test, in Unix milliseconds.
const epoch = 1_700_000_000_000

// table runs one task by commands, in virtual time. It keeps the journal, and the effects that are
// still to be carried out.
//
// After every command it checks the promises of the package:
//
// - Applying the journal gives the state.
// - A reloaded snapshot decides the same.
// - A rejected command changes nothing.
// - The outstanding effects are the collected ones that have not ended.
type table struct {
	t      require.TestingT
	state  *flow.State
	env    flow.Env
	rows   [][]byte
	events []flow.Event
	hands  func(flow.Job) flow.Report // carries out jobs

	shadow  *flow.State // rebuilt from the rows
	jobs    map[flow.Address]flow.Job
	claimed map[flow.Address]bool
	alarms  []flow.Alarm
	asks    []flow.Ask                     // not answered yet
	held    []flow.Held                    // permits
	carried map[flow.Address]bool          // steps with an actor
	ended   map[flow.Address]bool          // ended attempts
	asked   map[flow.Address]flow.Approval // open approvals, from decisions
	over    int                            // number of Ended effects
}

func newTable(t require.TestingT, plan *flow.Plan) *table {
	return &table{t: t, state: flow.NewState("task-1", plan), shadow: flow.NewState("task-1", plan),
		env: flow.Env{Now: epoch, Member: "m1"}, hands: carryOut,
		jobs: map[flow.Address]flow.Job{}, claimed: map[flow.Address]bool{},
		carried: map[flow.Address]bool{}, ended: map[flow.Address]bool{},
		asked: map[flow.Address]flow.Approval{}}
}

// do runs a command and its continuations.
func (tb *table) do(c flow.Command) (flow.Decision, error) { return tb.ask("", c) }

func (tb *table) ask(request string, c flow.Command) (flow.Decision, error) {
	all, err := tb.decide(request, c)
	for all.More != nil {
		d, err := tb.decide("", all.More)
		require.NoError(tb.t, err)
		all.Events, all.Effects, all.More = append(all.Events, d.Events...), append(all.Effects, d.Effects...), d.More
	}
	return all, err
}

func (tb *table) decide(request string, c flow.Command) (flow.Decision, error) {
	env := tb.env
	env.Request = request
	before := flow.EncodeSnapshot(tb.state).Bytes()
	twin := tb.twin(flow.EncodeSnapshot(tb.state).Bytes())
	d, err := flow.Decide(tb.state, c, env)
	if err != nil {
		require.NotEmpty(tb.t, flow.ErrorKindOf(err), "a refusal is an Error: %v", err)
		require.Equal(tb.t, before, flow.EncodeSnapshot(tb.state).Bytes(), "a refusal of %+v changed the state", c)
		require.Empty(tb.t, d)
	}
	if twin != nil {
		tb.sameDecision(twin, c, env, d, err)
	}
	most := env.Limits.OrDefault().Events + 4*env.Limits.OrDefault().Depth
	if all, ok := c.(flow.Reports); ok {
		most += 4 * len(all)
	}
	if start, ok := c.(flow.Start); ok && start.Fork != nil {
		most += len(start.Fork.Events)
	}
	require.LessOrEqual(tb.t, len(d.Events), most, "a decision is bounded")
	tb.keep(d)
	return d, err
}

// keep stores the events of a decision and collects its effects.
func (tb *table) keep(d flow.Decision) {
	if len(d.Events) > 0 {
		row := flow.AppendEvents(nil, d.Events)
		require.NoError(tb.t, flow.Fold(tb.shadow, row))
		tb.rows = append(tb.rows, row)
		tb.events = append(tb.events, d.Events...)
	}
	sameState(tb.t, tb.shadow, tb.state, "folding the journal gives another state")
	tb.checkLevels()
	for i := range d.Events {
		tb.oncePerAttempt(&d.Events[i])
		if e := &d.Events[i]; e.Type == flow.AttemptHeld {
			delete(tb.jobs, e.Address())
		}
	}
	for _, e := range d.Effects {
		tb.note(e)
	}
	tb.keepApprovals(d.Approvals)
	if d.More == nil {
		tb.checkOwed()
		tb.checkDags(tb.state.Root)
		sameWaits(tb.t, tb.state)
	}
}

// keepApprovals compares the approvals in decisions with those of the state.
func (tb *table) keepApprovals(changes []flow.Approval) {
	for _, a := range changes {
		delete(tb.asked, a.Address)
		if a.State == flow.ApprovalOpen {
			tb.asked[a.Address] = a
		}
	}
	now := map[flow.Address]flow.Approval{}
	for _, a := range tb.state.Approvals() {
		now[a.Address] = a
	}
	require.Equal(tb.t, now, tb.asked)
}

func (tb *table) note(e flow.Effect) {
	switch e := e.(type) {
	case flow.Dispatch:
		tb.jobs[e.Job.Address] = e.Job
		delete(tb.claimed, e.Job.Address)
	case flow.Over:
		delete(tb.jobs, e.Address)
		delete(tb.claimed, e.Address)
	case flow.Withdraw:
		delete(tb.jobs, e.Address)
		delete(tb.claimed, e.Address)
	case flow.WaitEnded: // hands gets it with the job
		job := tb.jobs[e.Address]
		require.Equal(tb.t, []any{job.Given, job.Carrier}, []any{e.Given, e.Carrier}, "the end of a wait goes to another delivery")
		job.Function = &flow.FunctionCall{Steps: append(slices.Clone(job.Function.Steps), e.Step), Undoes: job.Function.Undoes}
		tb.jobs[e.Address] = job
	case flow.Alarm:
		if e.Kind == flow.AlarmClaim {
			tb.claimed[e.Address] = true
		}
		tb.alarms = append(tb.alarms, e)
	case flow.Ask:
		tb.asks = append(tb.asks, e)
	case flow.Held:
		tb.asks = slices.DeleteFunc(tb.asks, func(a flow.Ask) bool { return a.Address == e.Address && a.Key == e.Key })
		tb.held = append(tb.held, e)
	case flow.Release:
		tb.asks = slices.DeleteFunc(tb.asks, func(a flow.Ask) bool { return a.Address == e.Address && a.Key == e.Key })
		tb.held = slices.DeleteFunc(tb.held, func(h flow.Held) bool { return h == flow.Held{e.Address, e.Key} })
	case flow.Spawn:
		tb.carried[e.Address] = true
	case flow.Prune:
		maps.DeleteFunc(tb.carried, func(a flow.Address, _ bool) bool { return a == e.Address || below(a.Scope, e.Address) })
	case flow.Ended:
		tb.over++
		clear(tb.carried)
	}
}

// wait lets time pass and rings the alarms that become due, in order.
func (tb *table) wait(ms int64) flow.Decision {
	var all flow.Decision
	until := tb.env.Now + ms
	for {
		i := tb.nextAlarm(until)
		if i < 0 {
			break
		}
		tb.env.Now = max(tb.env.Now, tb.alarms[i].At)
		d := tb.ring(i)
		all.Events, all.Effects = append(all.Events, d.Events...), append(all.Effects, d.Effects...)
	}
	tb.env.Now = until
	return all
}

func (tb *table) nextAlarm(until int64) int {
	next := -1
	for i, a := range tb.alarms {
		if a.At <= until && (next < 0 || a.At < tb.alarms[next].At) {
			next = i
		}
	}
	return next
}

// ring rings an alarm. An alarm that is not outstanding must have no effect.
func (tb *table) ring(i int) flow.Decision {
	a := tb.alarms[i]
	tb.alarms = slices.Delete(tb.alarms, i, i+1)
	stale := !slices.ContainsFunc(flow.Outstanding(tb.state),
		func(e flow.Effect) bool { return e == flow.Effect(a) }) &&
		!(a.Kind == flow.AlarmRetry && tb.state.Awaits(a))
	d, err := tb.do(flow.Ring{a})
	require.NoError(tb.t, err)
	if stale {
		require.Empty(tb.t, d.Events, "stale alarm %s had an effect", effectText(a))
	}
	return d
}

// crash drops everything except the store; another member takes over the attempts.
func (tb *table) crash(member string, visibility int64) flow.Decision {
	return tb.move(member, visibility)
}

// move moves the task to another member. The members named in alive continue with their attempts.
func (tb *table) move(member string, visibility int64, alive ...string) flow.Decision {
	tb.state = tb.twin(flow.EncodeSnapshot(tb.state).Bytes())
	tb.jobs, tb.claimed, tb.carried, tb.alarms, tb.asks = map[flow.Address]flow.Job{},
		map[flow.Address]bool{}, map[flow.Address]bool{}, nil, nil
	for _, e := range flow.Outstanding(tb.state) {
		if job := flow.JobOf(e); job != nil {
			tb.jobs[job.Address] = *job
			continue
		}
		tb.note(e)
		if a, ok := e.(flow.Alarm); ok && a.Kind == flow.AlarmClaim {
			tb.jobs[a.Address], _ = tb.state.Job(a.Address)
		}
	}
	tb.env.Member = member
	return tb.tell(flow.Recover{Since: tb.env.Now, Visibility: visibility, Alive: alive})
}

// tell runs a command that is never rejected.
func (tb *table) tell(c flow.Command) flow.Decision {
	d, err := tb.do(c)
	require.NoError(tb.t, err)
	return d
}

// open lists the jobs in flight in a fixed order.
func (tb *table) open() []flow.Address {
	return slices.SortedFunc(maps.Keys(tb.jobs), flow.Address.Compare)
}

// direct lists the units that must be finished through the API, in a fixed order.
func (tb *table) direct() []flow.Address {
	var list []flow.Address
	var below func(sc *flow.Scope)
	below = func(sc *flow.Scope) {
		for _, st := range sc.Active() {
			for i := range st.Units {
				if u := &st.Units[i]; u.Live != nil && st.ExecOf(i).Type == flow.ExecDirect {
					a := st.Address()
					a.Unit, a.Attempt = i, int(u.Attempt)
					list = append(list, a)
				}
			}
			if st.Child != nil {
				below(st.Child)
			}
		}
	}
	for _, st := range tb.state.Active() {
		below(st.Scope())
		break
	}
	return list
}

func (tb *table) finishDirectly(a flow.Address, text string) flow.Report {
	return flow.Report{Address: a, Output: json.RawMessage(`{"x":[1,"done"]}`), Error: text, Direct: true}
}

// work lets the scripted workers carry out all jobs until none is in flight.
func (tb *table) work() flow.Decision {
	all := tb.grant()
	for jobs := tb.open(); len(jobs) > 0; jobs = tb.open() {
		for _, a := range jobs {
			job, ok := tb.jobs[a]
			if !ok {
				continue // withdrawn meanwhile
			}
			d, err := tb.do(tb.hands(job))
			require.NoError(tb.t, err)
			all.Events, all.Effects = append(all.Events, d.Events...), append(all.Effects, d.Effects...)
		}
		tb.grant()
	}
	return all
}

// grant grants all requested permits.
func (tb *table) grant() flow.Decision {
	var all flow.Decision
	for len(tb.asks) > 0 {
		d := tb.tell(flow.Granted{Address: tb.asks[0].Address, Key: tb.asks[0].Key})
		all.Events, all.Effects = append(all.Events, d.Events...), append(all.Effects, d.Effects...)
	}
	return all
}

// carryOut returns the report of a scripted worker on a job.
func carryOut(j flow.Job) flow.Report {
	r := flow.Report{Address: j.Address, Worker: "w-" + j.Exec.Service, URL: "http://w"}
	n, _ := expr.Number(j.Input)
	switch {
	case j.Exec.Service == "mul":
		factor, _ := expr.Field(j.Params, "mul")
		m, _ := expr.Number(factor)
		r.Output = number(n * m)
	case j.Exec.Service == "params":
		r.Output = j.Params
	case j.Exec.Service == "route":
		action, _ := expr.Field(j.Params, "action")
		r.Output = flow.FieldOf("action", action)
	case j.Exec.Service == "boom", j.Exec.Service == "odd" && int(n)%2 == 1:
		r.Error = "boom"
	case j.Exec.Service == "third" && j.Attempt < 3:
		r.Error = "not yet"
	case j.Exec.Service == "list":
		r.Output = json.RawMessage(`[1,{"x":2},null]`)
	case j.Exec.Service == "yes", j.Exec.Service == "no":
		r.Output = json.RawMessage(strconv.FormatBool(j.Exec.Service == "yes"))
	default:
		r.Output = j.Input
	}
	return r
}

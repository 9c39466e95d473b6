package flow_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// epoch is when every test begins, in Unix milliseconds.
const epoch = 1_700_000_000_000

// table is a whole engine on a workbench: it drives one task by commands, keeps the journal and what
// the effects asked of the world, in virtual time. After every command it holds the promises of the
// package: folding the journal gives the state, a reloaded snapshot decides the same, a refusal
// changes nothing, and what is outstanding is what the effects said and nobody has ended.
type table struct {
	t      require.TestingT
	state  *flow.State
	env    flow.Env
	rows   [][]byte
	events []flow.Event
	hands  func(flow.Job) flow.Report // of whoever carries out jobs

	shadow  *flow.State // folded from the rows
	jobs    map[flow.Address]flow.Job
	claimed map[flow.Address]bool
	alarms  []flow.Alarm
	asks    []flow.Ask            // that have not been answered
	held    []flow.Held           // permits
	carried map[flow.Address]bool // steps with an actor of their own
	ended   map[flow.Address]bool // attempts
	over    int                   // times that Ended was said
}

func newTable(t require.TestingT, plan *flow.Plan) *table {
	return &table{t: t, state: flow.NewState("task-1", plan), shadow: flow.NewState("task-1", plan), env: flow.Env{Now: epoch, Member: "m1"}, hands: carryOut,
		jobs: map[flow.Address]flow.Job{}, claimed: map[flow.Address]bool{}, carried: map[flow.Address]bool{}, ended: map[flow.Address]bool{}}
}

// do decides a command and all that it leaves to proceed with.
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
	before := flow.EncodeSnapshot(tb.state)
	twin := tb.twin(flow.EncodeSnapshot(tb.state))
	d, err := flow.Decide(tb.state, c, env)
	if err != nil {
		require.NotEmpty(tb.t, flow.ErrorKindOf(err), "a refusal is an Error: %v", err)
		require.Equal(tb.t, before, flow.EncodeSnapshot(tb.state), "a refusal of %+v changed the state", c)
		require.Empty(tb.t, d)
	}
	if twin != nil {
		tb.sameDecision(twin, c, env, d, err)
	}
	most := env.Limits.OrDefault().Events + 4*env.Limits.OrDefault().Depth
	if all, ok := c.(flow.Reports); ok {
		most += 4 * len(all)
	}
	require.LessOrEqual(tb.t, len(d.Events), most, "a decision is bounded")
	tb.keep(d)
	return d, err
}

// twin is the state after a reload; nil before the first event, when there is none to reload.
func (tb *table) twin(snapshot []byte) *flow.State {
	if tb.state.Status == "" {
		return nil
	}
	s, ok := flow.DecodeSnapshot(snapshot, tb.state.Plan)
	require.True(tb.t, ok)
	return s
}

func (tb *table) sameDecision(twin *flow.State, c flow.Command, env flow.Env, d flow.Decision, err error) {
	d2, err2 := flow.Decide(twin, c, env)
	require.Equal(tb.t, err, err2)
	require.Equal(tb.t, compact(tb.t, flow.AppendEvents(nil, d.Events)), compact(tb.t, flow.AppendEvents(nil, d2.Events)), "a reloaded state decides %+v differently", c)
	require.Equal(tb.t, effectTexts(d.Effects), effectTexts(d2.Effects))
	require.Equal(tb.t, d.More, d2.More)
	sameState(tb.t, tb.state, twin)
}

// keep stores a decision's events and notes what its effects ask for.
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
	}
	for _, e := range d.Effects {
		tb.note(e)
	}
	if d.More == nil {
		tb.checkOwed()
		tb.checkDags(tb.state.Root)
	}
}

func (tb *table) oncePerAttempt(e *flow.Event) {
	if e.Type == flow.TaskRetried {
		tb.over = 0
	}
	if e.Type == flow.AttemptEnded {
		require.False(tb.t, tb.ended[e.Address()], "attempt %s ended twice", e.Address())
		tb.ended[e.Address()] = true
	}
}

// checkDags counts anew what scopes of dag mode count as they go, and looks for what could run and does not.
func (tb *table) checkDags(sc *flow.Scope) {
	s := tb.state
	if s.Status == "" || s.Status.Ended() {
		return
	}
	if c := s.Closing; c != nil && sc == s.Root {
		sc = c.Scope
	}
	for _, st := range sc.Active() {
		if st.Child != nil {
			tb.checkDags(st.Child)
		}
	}
	if sc.Plan.Dag == nil {
		return
	}
	left := 0
	for i, n := range sc.Plan.Dag.List {
		state := &sc.Nodes[i]
		waits, doomed := 0, false
		for _, dep := range n.Dag.Deps {
			switch {
			case !sc.Nodes[dep].Ended():
				waits++
			case !sc.Passes(dep, n):
				doomed = true
			}
		}
		if state.Ended() {
			continue
		}
		left++
		require.Equal(tb.t, doomed, state.Doomed, "%s in scope %q", n.Key, sc.Path)
		require.True(tb.t, waits == state.Waits || doomed, "%s in scope %q waits for %d, not %d", n.Key, sc.Path, waits, state.Waits)
		require.False(tb.t, state.Status == flow.StepStarted && waits > 0, "%s in scope %q has begun before what it waits for has ended", n.Key, sc.Path)
		require.True(tb.t, state.Status == flow.StepStarted || waits > 0 && !doomed || s.Paused() || s.Permits.Waits() || s.Canceling() || sc.EnterAt >= tb.env.Now, "%s in scope %q could run", n.Key, sc.Path)
	}
	require.Equal(tb.t, left, sc.NodesLeft())
	require.True(tb.t, left > 0 || s.Permits.Waits(), "scope %q is over and nobody has noticed", sc.Path)
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

// below says whether a scope is inside a step.
func below(scope string, step flow.Address) bool {
	child := flow.PathOfChild(step.Scope, step.Node, step.Visit)
	return scope == child || strings.HasPrefix(scope, child+"/")
}

// checkOwed compares what the effects said with what is outstanding.
func (tb *table) checkOwed() {
	if tb.state.Status.Ended() {
		require.True(tb.t, tb.state.CancelAt == 0 || tb.state.Status == flow.TaskCanceled, "what is canceled is %s", tb.state.Status)
		require.Equal(tb.t, 1, tb.over, "a task ends once")
		require.Empty(tb.t, tb.jobs, "a task that has ended has jobs; the last events: %s", tb.rows[max(0, len(tb.rows)-4):])
		require.Empty(tb.t, flow.Outstanding(tb.state))
		require.Empty(tb.t, tb.asks, "a task that has ended asks for permits")
		require.Empty(tb.t, tb.held, "a task that has ended holds permits")
		return
	}
	jobs, carried, asks := map[flow.Address]bool{}, map[flow.Address]bool{}, 0
	outstanding := flow.Outstanding(tb.state)
	tb.checkReaders(outstanding)
	for _, e := range outstanding {
		switch e := e.(type) {
		case flow.Dispatch:
			require.Equal(tb.t, effectText(flow.Dispatch{tb.jobs[e.Job.Address]}), effectText(e), "an outstanding job was never dispatched")
			require.False(tb.t, tb.claimed[e.Job.Address], "a claimed job is outstanding")
			jobs[e.Job.Address] = true
		case flow.Alarm:
			if e.Kind == flow.AlarmClaim {
				require.True(tb.t, tb.claimed[e.Address])
				jobs[e.Address] = true
			}
			require.True(tb.t, slices.Contains(tb.alarms, e), "outstanding alarm %s was never set", effectText(e))
		case flow.Spawn:
			carried[e.Address] = true
		case flow.Ask:
			require.Contains(tb.t, tb.asks, e)
			asks++
		}
	}
	require.Equal(tb.t, len(tb.asks), asks, "somebody still asks for a permit: %v", tb.asks)
	require.Equal(tb.t, len(tb.jobs), len(jobs), "a dispatched job is forgotten")
	require.Equal(tb.t, tb.carried, carried, "what is carried apart from the task; the last events: %s", tb.rows[max(0, len(tb.rows)-4):])
}

// checkReaders holds those who read a state against what is outstanding.
func (tb *table) checkReaders(outstanding []flow.Effect) {
	due, idle := flow.Idle(tb.state)
	for _, e := range outstanding {
		switch e := e.(type) {
		case flow.Alarm:
			require.True(tb.t, !idle || due > 0 && due <= e.At, "an idle task would miss %s", effectText(e))
		case flow.Dispatch:
			require.True(tb.t, !idle || e.Job.Exec.Type == flow.ExecQueue, "an idle task carries %s", effectText(e))
		}
	}
	if root := tb.state.Root; root != nil && root.Step != nil {
		require.Subset(tb.t, effectTexts(outstanding), effectTexts(flow.OutstandingOf(tb.state, root.Step.Address(), tb.env.Member)))
	}
	for _, w := range flow.Waiting(tb.state) {
		require.NotEmpty(tb.t, w.For+w.Text)
	}
}

// wait lets time pass and rings what becomes due, in order of time.
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

// ring rings an alarm; one that is not outstanding has no effect.
func (tb *table) ring(i int) flow.Decision {
	a := tb.alarms[i]
	tb.alarms = slices.Delete(tb.alarms, i, i+1)
	stale := !slices.ContainsFunc(flow.Outstanding(tb.state), func(e flow.Effect) bool { return e == flow.Effect(a) }) && !(a.Kind == flow.AlarmRetry && tb.state.Awaits(a))
	d, err := tb.do(flow.Ring{a})
	require.NoError(tb.t, err)
	if stale {
		require.Empty(tb.t, d.Events, "stale alarm %s had an effect", effectText(a))
	}
	return d
}

// crash forgets everything but the store; another member takes over what was carried.
func (tb *table) crash(member string, visibility int64) flow.Decision {
	return tb.move(member, visibility)
}

// move takes the task to another member. Those named alive go on with what they carry.
func (tb *table) move(member string, visibility int64, alive ...string) flow.Decision {
	tb.state = tb.twin(flow.EncodeSnapshot(tb.state))
	tb.jobs, tb.claimed, tb.carried, tb.alarms, tb.asks = map[flow.Address]flow.Job{}, map[flow.Address]bool{}, map[flow.Address]bool{}, nil, nil
	for _, e := range flow.Outstanding(tb.state) {
		if d, ok := e.(flow.Dispatch); ok {
			tb.jobs[d.Job.Address] = d.Job
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

// tell does what is never refused.
func (tb *table) tell(c flow.Command) flow.Decision {
	d, err := tb.do(c)
	require.NoError(tb.t, err)
	return d
}

// open lists the jobs in flight in a fixed order.
func (tb *table) open() []flow.Address {
	return slices.SortedFunc(maps.Keys(tb.jobs), flow.Address.Compare)
}

// direct lists the units that somebody has to finish through the API, in a fixed order.
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

// work has the scripted workers carry out everything in flight until nothing is.
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

// grant gives everybody what he asks for.
func (tb *table) grant() flow.Decision {
	var all flow.Decision
	for len(tb.asks) > 0 {
		d := tb.tell(flow.Granted{Address: tb.asks[0].Address, Key: tb.asks[0].Key})
		all.Events, all.Effects = append(all.Events, d.Events...), append(all.Effects, d.Effects...)
	}
	return all
}

// carryOut is what a scripted worker makes of a job.
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

func compact(t require.TestingT, row []byte) string {
	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, row))
	return b.String()
}

func effectTexts(effects []flow.Effect) []string {
	var texts []string
	for _, e := range effects {
		texts = append(texts, effectText(e))
	}
	return texts
}

var alarmNames = map[flow.AlarmKind]string{flow.AlarmTask: "task", flow.AlarmStep: "step", flow.AlarmEnter: "enter", flow.AlarmAttempt: "attempt", flow.AlarmClaim: "claim", flow.AlarmRetry: "retry", flow.AlarmStart: "start", flow.AlarmUnclaimed: "unclaimed"}

func effectText(e flow.Effect) string {
	switch e := e.(type) {
	case flow.Dispatch:
		return dispatchText(&e.Job)
	case flow.Over:
		return "over " + e.Address.String()
	case flow.Withdraw:
		return "withdraw " + e.Address.String() + quoted(" carrier=", e.Carrier)
	case flow.Alarm:
		return fmt.Sprintf("alarm %s %s %s", alarmNames[e.Kind], e.Address, clock(e.At))
	case flow.Ask:
		return fmt.Sprintf("ask %s %+v %s", e.Address, e.Permit, clock(e.AskedAt))
	case flow.Held:
		return "held " + e.Address.String() + " " + e.Key
	case flow.Release:
		return "release " + e.Address.String() + " " + e.Key
	case flow.Spawn:
		return "spawn " + e.Address.String()
	case flow.Prune:
		return "prune " + e.Address.String()
	case flow.Ended:
		return "ended " + string(e.Status)
	}
	panic(fmt.Sprintf("effect %T has no text", e))
}

func dispatchText(j *flow.Job) string {
	var b strings.Builder
	if j.Exec == nil {
		return "no dispatch"
	}
	fmt.Fprintf(&b, "dispatch %s %s:%s", j.Address, j.Exec.Type, j.Exec.Service+j.Exec.Func)
	if j.Branch != "" {
		fmt.Fprintf(&b, " branch=%s", j.Branch)
	}
	fmt.Fprintf(&b, " input=%s", oneLine(j.Input))
	if string(j.Params) != "{}" {
		fmt.Fprintf(&b, " params=%s", oneLine(j.Params))
	}
	if j.TimeoutMS > 0 {
		fmt.Fprintf(&b, " timeout=%dms", j.TimeoutMS)
	}
	if j.Again && j.Exec.Type != flow.ExecQueue {
		b.WriteString(" again")
	}
	if j.Deliveries > 0 {
		fmt.Fprintf(&b, " deliveries=%d", j.Deliveries)
	}
	return b.String()
}

func oneLine(v json.RawMessage) string {
	if c := expr.Compact(v); c != nil {
		return string(c)
	}
	return strconv.Quote(string(v))
}

// clock is a time as its distance from the beginning.
func clock(at int64) string { return fmt.Sprintf("%+d", at-epoch) }

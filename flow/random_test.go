package flow_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

const randomParams = `{"val": 3, "list":[1, 2, 3,{"x": 4}], "text":"h\u00e9 <&>\u2028", "big": 12345678901234567890, "action":"go"}`

// paramsFor returns params for a task of the plan.
func paramsFor(p *flow.Plan) json.RawMessage {
	if p.Root.Dag != nil && p.Root.Dag.RootMap != "" {
		return json.RawMessage(`[1, {"x": 2},null, 3]`)
	}
	return json.RawMessage(randomParams)
}

// randomCommand draws the next command, including late, repeated and invalid ones.
func (tb *table) randomCommand(d flowtest.Dice) (string, flow.Command) {
	request := flowtest.OneOf(d, "request", "", "", "r1", "r2")
	if len(tb.asks) > 0 && flowtest.Chance(d, 40) {
		ask := flowtest.OneOf(d, "ask", tb.asks...)
		return request, flow.Granted{Address: ask.Address, Key: ask.Key, Refused: flowtest.Chance(d, 15)}
	}
	if len(tb.held) > 0 && flowtest.Chance(d, 5) {
		held := flowtest.OneOf(d, "held", tb.held...)
		return request, flow.Evict(held)
	}
	switch flowtest.Between(d, "command", 0, 19) {
	case 16:
		at := tb.randomAddress(d)
		if waits := tb.outside(); len(waits) > 0 {
			at = flowtest.OneOf(d, "outside", waits...)
		}
		return request, flow.ExternalEnded{Address: at, Index: flowtest.Between(d, "index", 0, 1),
			Output: json.RawMessage(`1`), Error: flowtest.OneOf(d, "failure", "", "it broke")}
	case 15:
		return request, flow.Granted{Address: tb.randomAddress(d), Key: flowtest.OneOf(d, "granted", "jobs:/a:k", "nonsense")}
	case 0:
		return request, flow.Pause{}
	case 1:
		return request, flow.Resume{}
	case 2:
		if flowtest.Chance(d, 40) {
			return request, flow.Cancel{Gently: flowtest.Chance(d, 60), Force: flowtest.Chance(d, 20)}
		}
		return request, flow.Start{}
	case 3, 4:
		key, value := flowtest.OneOf(d, "key", "flag", "verdict", "out", "_rt", ""),
			flowtest.OneOf(d, "value", `true`, `false`, `"go"`, `null`, ` {"x" : [1 ]}`, `0`,
				`[4 ,5]`, `[{"x": 6}]`, `[[[[{"x":[1]}]]]]`, `[[[[[[[]]]]]]]`)
		return request, flow.Signal{Key: key, Value: json.RawMessage(value)}
	case 5:
		return request, flow.Claim{Address: tb.randomAddress(d), Worker: flowtest.OneOf(d, "worker",
			"w1", "w2"), Token: tb.token(d), Until: tb.env.Now + 150}
	case 6:
		return request, flow.Extend{Address: tb.randomAddress(d),
			Worker: flowtest.OneOf(d, "worker", "w1", "w2"), Token: tb.token(d), Until: tb.env.Now + 150}
	case 7:
		return request, flow.GiveBack{Address: tb.randomAddress(d), Token: tb.token(d)}
	case 8:
		return request, flow.Note{Address: tb.randomAddress(d), Token: flowtest.OneOf(d, "", "t1"),
			Text: flowtest.OneOf(d, "note", "running", "\xff", strings.Repeat("x", 300))}
	case 9:
		if flowtest.Chance(d, 20) {
			return request, flow.FailStep{Address: tb.randomAddress(d), Error: "crashed"}
		}
		return request, flow.Proceed{Waits: flowtest.Chance(d, 50)}
	case 10:
		switch at := tb.randomAddress(d); {
		case flowtest.Chance(d, 30):
			return request, flow.Leave{Return: flow.Return{Grace: flowtest.OneOf[int64](d, "grace", 0, 100)}}
		case flowtest.Chance(d, 50):
			return request, flow.Bring{Address: at, Carrier: tb.env.Member, Worker: "w1",
				Given: flowtest.Between(d, "given", 0, 1), Since: tb.enqueued(d, at)}
		}
		if flowtest.Chance(d, 30) {
			return request, flow.Inquire{tb.randomAddress(d), tb.env.Member, flowtest.Between(d, "given", 0, 2)}
		}
		if flowtest.Chance(d, 30) {
			return request, flow.Working{tb.randomAddress(d), tb.env.Now - 50}
		}
		return request, flow.Begin{tb.randomAddress(d), tb.env.Member}
	case 11:
		kind := flow.AlarmKind(flowtest.Between(d, "alarm", 0, 10))
		return request, flow.Ring{flow.Alarm{At: tb.env.Now, Address: tb.randomAddress(d), Kind: kind}}
	case 12:
		return request, flow.RetryTask{Node: flowtest.OneOf(d, "retried", "", "", tb.randomAddress(d).Node)}
	case 13:
		items := []json.RawMessage{json.RawMessage(`7`), nil, json.RawMessage(`{"x": [ 1]}`)}[:flowtest.Between(d, "items", 0, 3)]
		return request, flow.Append{Address: tb.randomFanout(d), Items: items,
			Route: flowtest.OneOf(d, "route", "", "", "push", "queue", "direct")}
	case 14:
		return request, tb.finishDirectly(tb.randomAddress(d), flowtest.OneOf(d, "direct", "", "", "no"))
	}
	if flowtest.Chance(d, 20) {
		var all flow.Reports
		for range flowtest.Between(d, "reports", 0, 6) {
			all = append(all, tb.randomReport(d))
		}
		return request, all
	}
	return request, tb.randomReport(d)
}

// randomReport usually reports on a job in flight.
func (tb *table) randomReport(d flowtest.Dice) flow.Report {
	r := flow.Report{Address: tb.randomAddress(d), Token: tb.token(d), Fatal: flowtest.Chance(d, 10), TimedOut: flowtest.Chance(d, 10)}
	if job, ok := tb.jobs[r.Address]; ok && flowtest.Chance(d, 70) {
		return carryOut(job)
	}
	if flowtest.Chance(d, 20) {
		r.Deferred = []flow.External{{Service: "s", ID: "j", Pending: flowtest.Chance(d, 60)}}
	}
	r.Output = json.RawMessage(flowtest.OneOf(d, "result", ``, `null`, `1`,
		`{"action": "go", "x":[1, 2]}`, `{"x":[[[[[]]]]]}`, `"`+strings.Repeat("y", 3000)+`"`))
	r.Error = flowtest.OneOf(d, "error", "", "", "boom \xff<\u2028>", strings.Repeat("z", 100))
	r.Details = json.RawMessage(flowtest.OneOf(d, "details", "", "", `{"k": 1}`, `{`))
	r.Metrics = json.RawMessage(flowtest.OneOf(d, "metrics", "", "", `[{"name": "a", "count": 1}]`, `[`, `{}`))
	return r
}

// outside returns the attempts that wait for external jobs.
func (tb *table) outside() (list []flow.Address) {
	for _, w := range flow.Waiting(tb.state) {
		if w.For == flow.WaitsExternal {
			list = append(list, w.Address)
		}
	}
	return list
}

func (tb *table) token(d flowtest.Dice) string { return flowtest.OneOf(d, "token", "", "", "t1", "t2") }

// randomAddress usually returns a job in flight, else a similar or an invalid address.
func (tb *table) randomAddress(d flowtest.Dice) flow.Address {
	var known []flow.Address
	for _, e := range tb.events {
		known = append(known, e.Address())
	}
	if open := append(tb.open(), tb.direct()...); len(open) > 0 && flowtest.Chance(d, 75) {
		return flowtest.OneOf(d, "open", open...)
	}
	if len(known) > 0 && flowtest.Chance(d, 70) {
		return flowtest.OneOf(d, "known", known[max(0, len(known)-20):]...)
	}
	return flow.Address{Scope: flowtest.OneOf(d, "scope", "", "a#1", "x/y"), Node: flowtest.OneOf(d, "node", "a", "b", "nope"),
		Visit: flowtest.Between(d, "visit", -1, 2), Unit: flowtest.Between(d, "unit", -1, 9),
		Attempt: flowtest.Between(d, "attempt", -1, 2)}
}

// enqueued returns when an attempt was enqueued, or another time.
func (tb *table) enqueued(d flowtest.Dice, at flow.Address) int64 {
	if live := tb.state.Live(at); live != nil && flowtest.Chance(d, 80) {
		return live.StartedAt
	}
	return tb.env.Now
}

// randomFanout returns a step that accepts more units, if there is one.
func (tb *table) randomFanout(d flowtest.Dice) flow.Address {
	for _, st := range tb.state.Active() {
		if st.Node.Kind == flow.KindFanout && flowtest.Chance(d, 80) {
			return st.Address()
		}
	}
	return tb.randomAddress(d)
}

// happen runs one random action: a command, time passing, an alarm out of order, or a crash.
func (tb *table) happen(d flowtest.Dice, i int) {
	switch flowtest.Between(d, "what", 0, 9) {
	case 0:
		tb.wait(int64(flowtest.Between(d, "ms", 0, 250)))
	case 1:
		if len(tb.alarms) > 0 { // may be too early
			tb.ring(flowtest.Between(d, "alarm", 0, len(tb.alarms)-1))
		}
	case 2:
		if flowtest.Chance(d, 40) {
			tb.crash(fmt.Sprintf("m%d", i+2), flowtest.OneOf[int64](d, "visibility", 0, 400))
		}
	default:
		tb.ask(tb.randomCommand(d))
	}
}

// drain continues until the task ends: it carries out jobs, rings alarms and sends signals.
func (tb *table) drain() bool {
	if tb.state.Paused() && !tb.state.Status.Ended() {
		tb.do(flow.Resume{})
	}
	for range 4_000 { // the longest case undoes the units of 60 steps with retries
		if tb.state.Status.Ended() {
			return true
		}
		before := len(tb.events)
		tb.work()
		for _, a := range tb.direct() {
			tb.do(tb.finishDirectly(a, ""))
		}
		for _, a := range tb.outside() {
			tb.do(flow.ExternalEnded{Address: a})
		}
		tb.wait(1_000)
		if len(tb.events) == before {
			tb.signalAll()
			tb.giveUp()
		}
	}
	return tb.state.Status.Ended()
}

// signalAll sends the signals that steps of the task wait for.
func (tb *table) signalAll() {
	signals := map[string]json.RawMessage{}
	eachStep(tb.state, func(st *flow.Step) {
		if key, v := st.Placed(json.RawMessage(`true`)); key != "" {
			signals[key] = v
		}
	})
	for _, key := range slices.Sorted(maps.Keys(signals)) {
		tb.do(flow.Signal{Key: key, Value: signals[key]})
	}
}

// giveUp cancels a task that waits for a signal that cannot be sent.
func (tb *table) giveUp() {
	for _, w := range flow.Waiting(tb.state) {
		if strings.Contains(w.Text, "$params.") {
			tb.do(flow.Cancel{Force: true})
			return
		}
	}
}

// orderedEvents checks that all events of an attempt are between its start and its end.
func orderedEvents(events []flow.Event) error {
	var started []flow.Address
	for i := range events {
		e := &events[i]
		switch e.Type {
		case flow.AttemptsDispatched:
			for u := e.Unit; u < e.Unit+e.Total; u++ {
				a := e.Address()
				a.Unit = u
				if slices.Contains(started, a) {
					return fmt.Errorf("attempt %s was started twice", a)
				}
				started = append(started, a)
			}
		case flow.AttemptStarted, flow.AttemptClaimed, flow.AttemptExtended,
			flow.AttemptStatusChanged, flow.AttemptRequeued, flow.AttemptEnded:
			if !slices.Contains(started, e.Address()) {
				return fmt.Errorf("%s of attempt %s, which was not started", e.Type, e.Address())
			}
		}
	}
	return nil
}

package cases

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// noEvent is a position before the first event.
const noEvent = -1

// checkNever searches for a forbidden event.
func (k *checker) checkNever(v *Never) {
	if v.Done != "" {
		k.checkUndone(v)
		return
	}
	var wrong []*rehearse.Call
	for _, c := range k.callsOf(v.Call) {
		if k.isForbidden(v, c) {
			wrong = append(wrong, c)
		}
	}
	if len(wrong) <= max(v.MoreThan, 0) {
		return
	}
	c := wrong[max(v.MoreThan, 0)]
	k.addFailure("never", v.At, "never: %s was called %s, at %s with %s", v.Call, v.conditionText(),
		rehearse.Span(c.Began), rehearse.Value(c.Input))
}

// isForbidden reports whether a call is forbidden.
func (k *checker) isForbidden(v *Never, c *rehearse.Call) bool {
	switch {
	case v.Before != "":
		at := k.firstCompleted(v.Before)
		return at == noEvent || at > c.BeganAt
	case v.After != "":
		at := k.firstBegun(v.After)
		return at != noEvent && at <= c.BeganAt
	case v.AfterFailed != "":
		at := k.firstEnd(v.AfterFailed, flow.StepFailed)
		return at != noEvent && at <= c.BeganAt
	}
	return true
}

func (v *Never) conditionText() string {
	text := ""
	switch {
	case v.Before != "":
		text = "before " + v.Before + " had completed"
	case v.After != "":
		text = "after " + v.After + " had begun"
	case v.AfterFailed != "":
		text = "after " + v.AfterFailed + " had failed"
	}
	if v.MoreThan > 0 {
		text = fmt.Sprintf("more than %d times ", v.MoreThan) + text
	}
	if text == "" {
		return "at all"
	}
	return text
}

// firstCompleted returns the number of events before the first completion of a node, or the first
// successful answer of a service or function.
func (k *checker) firstCompleted(name string) int {
	first := k.firstEnd(name, flow.StepCompleted)
	for _, c := range k.Calls {
		if (c.Exec.Service == name || c.Exec.Func == name) && c.OK && (first == noEvent || c.EndedAt < first) {
			first = c.EndedAt
		}
	}
	return first
}

// firstBegun returns the number of events before a node was first entered, or a service or function
// was first called.
func (k *checker) firstBegun(name string) int {
	for i := range k.Events {
		if e := &k.Events[i]; e.Type == flow.StepEntered && e.Address().Step() == name {
			return i
		}
	}
	for _, c := range k.Calls {
		if Matches(c, name) {
			return c.BeganAt
		}
	}
	return noEvent
}

// firstEnd returns the number of events before a node first ended with a status. A service or
// function fails with the first failed step that calls it.
func (k *checker) firstEnd(name string, status flow.StepStatus) int {
	asked := map[string]bool{name: true}
	for _, c := range k.Calls {
		if status == flow.StepFailed && Matches(c, name) {
			asked[c.Step()] = true
		}
	}
	for i := range k.Events {
		if e := &k.Events[i]; e.Type == flow.StepEnded && e.Status == string(status) && asked[e.Address().Step()] {
			return i + 1
		}
	}
	return noEvent
}

// checkUndone searches for completed work that was not undone although the task did not complete.
func (k *checker) checkUndone(v *Never) {
	if !k.State.Status.Ended() || string(k.State.Status) == v.Unless || !k.isDone(v.Done) {
		return
	}
	if slices.ContainsFunc(k.callsOf(v.Without), func(c *rehearse.Call) bool { return c.OK }) {
		return
	}
	how := "was not called"
	if len(k.callsOf(v.Without)) > 0 {
		how = "did not succeed"
	}
	k.addFailure("never", v.At, "never: %s was done, the task is %s, and %s %s", v.Done, k.State.Status, v.Without, how)
}

// isDone reports whether a node has completed, or a call of the name has succeeded. A single
// successful unit of a failed step counts, because it has to be undone, too.
func (k *checker) isDone(name string) bool {
	return k.firstEnd(name, flow.StepCompleted) != noEvent ||
		slices.ContainsFunc(k.callsOf(name), func(c *rehearse.Call) bool { return c.OK })
}

// checkAlways evaluates a condition at the end.
func (k *checker) checkAlways(a *Always) {
	holds, err := a.Cond.Bool(k.endVars)
	switch {
	case err != nil:
		k.addFailure("always", a.At, "always: %v", err)
	case !holds:
		k.addFailure("always", a.At, "always: %s does not hold", a.Cond.Source())
	}
}

// endVars returns the variables of conditions at the end.
func (k *checker) endVars(name string) (expr.Source, bool) {
	switch name {
	case "state":
		return expr.Raw(expr.Quote(State(k.Story))), true
	case "error":
		return expr.Raw(expr.Quote(k.State.Error)), true
	case "result":
		return expr.Raw(orNull(k.State.Result())), true
	case "shared":
		return expr.Raw(k.State.Root.SharedJSON()), true
	case "params":
		return expr.Raw(orNull(k.State.Params)), true
	case "took":
		return expr.Raw(numberJSON(int(k.Took.Milliseconds()))), true
	case "called":
		return k.callCounts(func(*rehearse.Call) bool { return true }), true
	case "ok":
		return k.callCounts(func(c *rehearse.Call) bool { return c.OK }), true
	case "failed":
		return k.callCounts(func(c *rehearse.Call) bool { return c.Over && !c.OK }), true
	case "calls":
		return expr.Raw(k.allCalls()), true
	}
	return expr.Source{}, false
}

// callCounts counts calls by node, service or function; 0 if never called.
func (k *checker) callCounts(which func(*rehearse.Call) bool) expr.Source {
	count := func(name string) (n int) {
		for _, c := range k.callsOf(name) {
			if which(c) {
				n++
			}
		}
		return n
	}
	return expr.Source{
		Field: func(name string) (json.RawMessage, bool) { return numberJSON(count(name)), true },
		All: func() json.RawMessage {
			all := map[string]int{}
			for _, c := range k.Calls {
				for _, name := range []string{c.Step(), c.Exec.Service, c.Exec.Func} {
					all[name] = count(name)
				}
			}
			b, _ := json.Marshal(all) // encoding strings and numbers cannot fail
			return b
		},
	}
}

// callRecord is a call as seen by conditions. Began and Ended are event counts, so they order
// simultaneous calls, too.
type callRecord struct {
	Name    string          `json:"name"`
	Node    string          `json:"node"`
	Service string          `json:"service"`
	Input   json.RawMessage `json:"input"`
	Output  json.RawMessage `json:"output"`
	Error   string          `json:"error"`
	OK      bool            `json:"ok"`
	Began   int             `json:"began"`
	Ended   int             `json:"ended"`
	Attempt int             `json:"attempt"`
	Unit    int             `json:"unit"`
	AtMS    int64           `json:"at_ms"`
}

func (k *checker) allCalls() json.RawMessage {
	all := []callRecord{}
	for _, c := range k.Calls {
		t := callRecord{Name: c.Name, Node: c.Step(), Service: c.Service(), Input: orNull(c.Input),
			Output: orNull(c.Answer.Output), Error: c.Answer.Error, OK: c.OK,
			Began: c.BeganAt, Ended: c.EndedAt, Attempt: c.Attempt, Unit: c.Unit, AtMS: c.Began.Milliseconds()}
		if !c.Over {
			t.Ended = math.MaxInt32
		}
		all = append(all, t)
	}
	b, err := json.Marshal(all)
	if err != nil { // an output that is not JSON; the core has refused it
		return json.RawMessage("[]")
	}
	return b
}

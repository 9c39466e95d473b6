package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Failure is an expectation that does not hold.
type Failure struct {
	ID   string // same for the same expectation, independent of the actual value
	At   Place
	Text string
	More []string // details of the difference
}

// checker compares a story with the expectations of a case.
type checker struct {
	*rehearse.Story
	testCase *Case
	failures []Failure
}

func (k *checker) addFailure(id string, at Place, format string, args ...any) {
	k.failures = append(k.failures, Failure{ID: fmt.Sprintf("%s@%d:%d", id, at.Line, at.Column),
		At: at, Text: fmt.Sprintf(format, args...)})
}

// addDifferences reports the differences between two values, path by path.
func (k *checker) addDifferences(id string, at Place, what string, want, got json.RawMessage, part bool) {
	list := listDifferences(what, want, got, part)
	if len(list) == 0 {
		return
	}
	k.addFailure(id, at, "%s is not as expected", what)
	k.failures[len(k.failures)-1].More = list
}

// Check returns the expectations that do not hold in a story. In a story with faults (disturbed) it
// ignores the expectations for undisturbed runs.
func (c *Case) Check(s *rehearse.Story, disturbed bool) []Failure {
	k := &checker{Story: s, testCase: c}
	if s.Err != nil {
		k.addFailure("story", c.At, "%v", s.Err)
		return k.failures
	}
	if !disturbed {
		k.checkActs()
	}
	for _, e := range c.Expect {
		if !disturbed || !e.Undisturbed {
			k.checkExpectation(e)
		}
	}
	for _, v := range c.Never {
		k.checkNever(v)
	}
	for _, a := range c.Always {
		k.checkAlways(a)
	}
	return k.failures
}

// checkActs checks that every act had an effect. An act without effect, for example one that is too
// late, is a mistake in the case.
func (k *checker) checkActs() {
	for i := range k.Done {
		if d := &k.Done[i]; d.Err != nil {
			k.addFailure("act "+d.ID, k.testCase.actsFrom[d.ID], "%s was in vain: %v", d.ID, d.Err)
		}
	}
	if k.Left {
		return
	}
	for _, a := range k.Undone {
		why := "that never waited"
		if a.Waiting == "" {
			why = "the task had ended by then, after " + rehearse.Span(k.Took)
		}
		k.addFailure("act "+a.ID, k.testCase.actsFrom[a.ID], "%s was not done: %s", a.ID, why)
	}
}

func (k *checker) checkExpectation(e *Expectation) {
	s := k.State
	if got := State(k.Story); e.State != nil && got != e.State.Value {
		k.addFailure("state", e.State.At, "state: expected %s, but the task is %s%s", e.State.Value, got, k.stateReason())
	}
	if e.Error != nil {
		k.checkError(e.Error)
	}
	if e.Result != nil {
		k.addDifferences("result", e.Result.At, "result", e.Result.Value, s.Result(), false)
	}
	if e.ResultHas != nil {
		k.addDifferences("result_has", e.ResultHas.At, "result", e.ResultHas.Value, s.Result(), true)
	}
	for _, key := range slices.Sorted(maps.Keys(e.Shared)) {
		want := e.Shared[key]
		k.addDifferences("shared", want.At, "shared."+key, want.Value, orNull(s.Root.Shared[key]), false)
	}
	if e.Steps != nil {
		k.checkSteps(e.Steps)
	}
	for _, node := range slices.Sorted(maps.Keys(e.Nodes)) {
		want := e.Nodes[node]
		if got := k.nodeStatus(node); got != want.Value {
			k.addFailure("nodes", want.At, "node %s: expected %s, but it is %s", node, want.Value, got)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Calls)) {
		k.checkCalls(name, e.Calls[name])
	}
	if e.Took != nil {
		k.checkTook(e.Took)
	}
	if e.Waits != nil {
		k.checkWaits(e.Waits)
	}
}

// State returns the state of a story's task as written in cases.
func State(s *rehearse.Story) string {
	if s.State.Paused() {
		return pausedState
	}
	return string(s.State.Status)
}

// stateReason returns the reason for a task's state.
func (k *checker) stateReason() string {
	if k.State.Error != "" {
		return ": " + k.State.Error
	}
	var waits []string
	for _, w := range flow.Waiting(k.State) {
		waits = append(waits, strings.TrimPrefix(w.Step()+": ", ": ")+w.Text)
	}
	if len(waits) == 0 {
		return ""
	}
	return ", and waits: " + strings.Join(waits, "; ")
}

func (k *checker) checkError(want *Said[string]) {
	got := k.State.Error
	switch {
	case want.Value == "" && got != "":
		k.addFailure("error", want.At, "error: expected none, but it is %q", got)
	case !strings.Contains(got, want.Value):
		k.addFailure("error", want.At, "error: expected one with %q, but it is %q", want.Value, got)
	}
}

// checkSteps compares the entered nodes with the expected ones.
func (k *checker) checkSteps(want *Said[[][]string]) {
	got := Entered(k.Story)
	rest := got
	for _, group := range want.Value {
		n := min(len(group), len(rest))
		if !sameSet(group, rest[:n]) {
			k.addFailure("steps", want.At, "steps: expected %s", inOrder(want.Value))
			k.failures[len(k.failures)-1].More = []string{"got: " + strings.Join(got, ", "),
				"they differ from step " + fmt.Sprint(len(got)-len(rest)+1) + " on"}
			return
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		k.addFailure("steps", want.At, "steps: expected %s, but there are more: %s", inOrder(want.Value), strings.Join(rest, ", "))
	}
}

// Entered returns the entered nodes in order, with repetitions, and without nodes generated by the
// compiler.
func Entered(s *rehearse.Story) (all []string) {
	for i := range s.Events {
		if e := &s.Events[i]; e.Type == flow.StepEntered && !rehearse.Ghost(s.State.Plan, e) {
			all = append(all, e.Address().Step())
		}
	}
	return all
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func inOrder(groups [][]string) string {
	var all []string
	for _, g := range groups {
		if len(g) == 1 {
			all = append(all, g[0])
			continue
		}
		all = append(all, "["+strings.Join(g, ", ")+"]")
	}
	return strings.Join(all, ", ")
}

// nodeStatus returns the state of a node at the end, which is the state of its last visit.
func (k *checker) nodeStatus(path string) string {
	status := string(flow.StepCreated)
	for i := range k.Events {
		e := &k.Events[i]
		if e.Address().Step() != path {
			continue
		}
		switch e.Type {
		case flow.StepEntered:
			status = string(flow.StepStarted)
		case flow.StepEnded:
			status = e.Status
		}
	}
	return status
}

// callsOf returns the calls of a node, service or function.
func (k *checker) callsOf(name string) (all []*rehearse.Call) {
	for _, c := range k.Calls {
		if Matches(c, name) {
			all = append(all, c)
		}
	}
	return all
}

func (k *checker) checkCalls(name string, want *Calls) {
	got := k.callsOf(name)
	switch {
	case len(got) < want.Min || want.Max >= 0 && len(got) > want.Max:
		k.addFailure("calls", want.At, "calls of %s: expected %s, got %d", name, want.countText(), len(got))
		for _, c := range got {
			last := &k.failures[len(k.failures)-1]
			last.More = append(last.More, fmt.Sprintf("at %s with %s", rehearse.Span(c.Began), rehearse.Value(c.Input)))
		}
		return
	case want.Each != nil:
		for _, c := range got {
			k.checkInput(c, want.Each)
		}
	}
	for i := range want.List {
		k.checkInput(got[i], &want.List[i])
	}
}

func (k *checker) checkInput(c *rehearse.Call, want *Input) {
	what := "the input of " + c.Name
	if want.Whole != nil {
		k.addDifferences("input", want.At, what, want.Whole, orNull(c.Input), false)
	}
	if want.Has != nil {
		k.addDifferences("input_has", want.At, what, want.Has, orNull(c.Input), true)
	}
}

func (c *Calls) countText() string {
	switch {
	case c.Max < 0:
		return fmt.Sprintf("at least %d", c.Min)
	case c.Min == c.Max:
		return fmt.Sprint(c.Min)
	case c.Min == 0:
		return fmt.Sprintf("at most %d", c.Max)
	}
	return fmt.Sprintf("%d to %d", c.Min, c.Max)
}

func (k *checker) checkTook(want *Said[Range]) {
	switch got, r := k.Took, want.Value; {
	case r.Min == r.Max && got != r.Min:
		k.addFailure("took", want.At, "took: expected %s, but it was %s", rehearse.Span(r.Min), rehearse.Span(got))
	case got < r.Min:
		k.addFailure("took", want.At, "took: expected at least %s, but it was %s", rehearse.Span(r.Min), rehearse.Span(got))
	case r.Max >= 0 && got > r.Max:
		k.addFailure("took", want.At, "took: expected at most %s, but it was %s", rehearse.Span(r.Max), rehearse.Span(got))
	}
}

// checkWaits checks which steps the task waits for at the end.
func (k *checker) checkWaits(want *Said[[]string]) {
	var got []string
	for _, w := range flow.Waiting(k.State) {
		got = append(got, w.Step())
	}
	if !sameSet(want.Value, got) {
		k.addFailure("waits", want.At, "waits: expected %s, but it is %s", orNothing(want.Value), orNothing(got))
	}
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

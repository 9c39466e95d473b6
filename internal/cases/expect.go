package cases

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Expectation is the expected outcome of a case. Nil fields are not checked.
type Expectation struct {
	Undisturbed bool // whether the expectation holds only without faults
	State       *Said[string]
	Result      *Said[json.RawMessage]
	ResultHas   *Said[json.RawMessage]
	Shared      map[string]Said[json.RawMessage]
	Error       *Said[string]
	Steps       *Said[[][]string] // nodes of an inner list may come in any order
	Nodes       map[string]Said[string]
	Calls       map[string]*Calls
	Took        *Said[Range]
	Waits       *Said[[]string]
}

// Said is a value with its position in the file.
type Said[T any] struct {
	Value T
	At    Place
}

func withPlace[T any](v T, n *yaml.Node) *Said[T] { return &Said[T]{v, placeOf(n)} }

// Calls are the expected calls of a node, service or function.
type Calls struct {
	At       Place
	Min, Max int     // Max -1 means no limit
	Each     *Input  // input of every call
	List     []Input // inputs of the calls, in order
}

// Input is the expected input of a call.
type Input struct {
	At    Place
	Whole json.RawMessage // nil means any input
	Has   json.RawMessage
}

// Range is a range of durations, including both ends.
type Range struct{ Min, Max time.Duration }

func (r *caseReader) readUndisturbed(n *yaml.Node) *Expectation {
	e := r.readExpectation(n, "undisturbed")
	e.Undisturbed = true
	return e
}

var states = []string{string(flow.TaskCompleted), string(flow.TaskFailed),
	string(flow.TaskCanceled), string(flow.TaskRunning), string(flow.TaskCanceling), pausedState}

// pausedState is the state of a running task that is paused.
const pausedState = "paused"

var stepStates = []string{string(flow.StepCreated), string(flow.StepStarted),
	string(flow.StepCompleted), string(flow.StepFailed), string(flow.StepSkipped)}

func (r *caseReader) readExpectation(n *yaml.Node, what string) *Expectation {
	e := &Expectation{}
	r.readFields(n, what, map[string]func(*yaml.Node){
		"state":      func(n *yaml.Node) { e.State = withPlace(r.readWord(n, "state", states), n) },
		"result":     func(n *yaml.Node) { e.Result = withPlace(r.readJSON(n), n) },
		"result_has": func(n *yaml.Node) { e.ResultHas = withPlace(r.readJSON(n), n) },
		"shared": func(n *yaml.Node) {
			e.Shared = map[string]Said[json.RawMessage]{}
			r.readMapping(n, "shared", func(key, v *yaml.Node) { e.Shared[key.Value] = *withPlace(r.readJSON(v), v) })
		},
		"error": func(n *yaml.Node) { e.Error = withPlace(r.readText(n, "error"), n) },
		"steps": func(n *yaml.Node) { e.Steps = withPlace(r.readSteps(n), n) },
		"nodes": func(n *yaml.Node) {
			e.Nodes = map[string]Said[string]{}
			r.readMapping(n, "nodes", func(key, v *yaml.Node) {
				e.Nodes[r.readNodeName(key, "nodes")] = *withPlace(r.readWord(v, "state of a step", stepStates), v)
			})
		},
		"calls": func(n *yaml.Node) {
			e.Calls = map[string]*Calls{}
			r.readMapping(n, "calls", func(key, v *yaml.Node) { e.Calls[r.readName(key, "calls")] = r.readCalls(v) })
		},
		"took":  func(n *yaml.Node) { e.Took = withPlace(r.readTook(n), n) },
		"waits": func(n *yaml.Node) { e.Waits = withPlace(r.readTexts(n, "waits"), n) },
	})
	return e
}

func (r *caseReader) readWord(n *yaml.Node, what string, words []string) string {
	word := r.readText(n, what)
	if word != "" && !slices.Contains(words, word) {
		r.reportUnknown(n, what, word, words)
	}
	return word
}

// readSteps reads the expected order of nodes.
func (r *caseReader) readSteps(n *yaml.Node) (all [][]string) {
	if !r.expectKind(n, yaml.SequenceNode, "steps") {
		return nil
	}
	for _, e := range listElements(n) {
		var group []string
		for _, name := range listElements(e) {
			group = append(group, r.readNodeName(name, "steps"))
		}
		all = append(all, group)
	}
	return all
}

// readCalls reads the expected number and inputs of calls.
func (r *caseReader) readCalls(n *yaml.Node) *Calls {
	c := &Calls{At: placeOf(n), Max: -1}
	switch n.Kind {
	case yaml.ScalarNode:
		c.Min = r.readNumber(n, "the number of calls", 0)
		c.Max = c.Min
		return c
	case yaml.SequenceNode:
		for _, e := range listElements(n) {
			c.List = append(c.List, r.readInput(e, nil))
		}
		c.Min, c.Max = len(c.List), len(c.List)
		return c
	}
	each := r.readInput(n, map[string]func(*yaml.Node){
		"times": func(n *yaml.Node) { c.Min = r.readNumber(n, "times", 0); c.Max = c.Min },
		"min":   func(n *yaml.Node) { c.Min = r.readNumber(n, "min", 0) },
		"max":   func(n *yaml.Node) { c.Max = r.readNumber(n, "max", 0) },
	})
	if each.Whole != nil || each.Has != nil {
		c.Each = &each
	}
	return c
}

func (r *caseReader) readInput(n *yaml.Node, also map[string]func(*yaml.Node)) Input {
	in := Input{At: placeOf(n)}
	known := map[string]func(*yaml.Node){
		"input":     func(n *yaml.Node) { in.Whole = r.readJSON(n) },
		"input_has": func(n *yaml.Node) { in.Has = r.readJSON(n) },
	}
	for key, read := range also {
		known[key] = read
	}
	r.readFields(n, "calls", known)
	return in
}

// readTook reads a duration or a range of durations.
func (r *caseReader) readTook(n *yaml.Node) Range {
	if n.Kind == yaml.ScalarNode {
		d := r.readSpan(n, "took")
		return Range{d, d}
	}
	between := Range{Max: -1}
	r.readFields(n, "took", map[string]func(*yaml.Node){
		"min": func(n *yaml.Node) { between.Min = r.readSpan(n, "min") },
		"max": func(n *yaml.Node) { between.Max = r.readSpan(n, "max") },
	})
	return between
}

// Never is something that must never happen.
type Never struct {
	At          Place
	Call        string // the forbidden call, together with one of the following conditions
	Before      string // forbidden before this name has completed
	After       string // forbidden after this name has begun
	AfterFailed string // forbidden after this name has failed
	MoreThan    int    // maximal number of calls; -1 means that every call is forbidden
	Done        string // a completed name, while the task has ended in another state than Unless
	Without     string // call that must then have succeeded, such as a compensation
	Unless      string
}

func (r *caseReader) readNevers(c *Case, n *yaml.Node) {
	for _, e := range listElements(n) {
		v := &Never{At: placeOf(e), MoreThan: -1, Unless: string(flow.TaskCompleted)}
		r.readFields(e, "never", map[string]func(*yaml.Node){
			"call":         func(n *yaml.Node) { v.Call = r.readName(n, "call") },
			"before":       func(n *yaml.Node) { v.Before = r.readName(n, "before") },
			"after":        func(n *yaml.Node) { v.After = r.readName(n, "after") },
			"after_failed": func(n *yaml.Node) { v.AfterFailed = r.readName(n, "after_failed") },
			"more_than":    func(n *yaml.Node) { v.MoreThan = r.readNumber(n, "more_than", 0) },
			"done":         func(n *yaml.Node) { v.Done = r.readName(n, "done") },
			"without":      func(n *yaml.Node) { v.Without = r.readName(n, "without") },
			"unless":       func(n *yaml.Node) { v.Unless = r.readWord(n, "unless", states) },
		})
		conditions := len(slices.DeleteFunc([]string{v.Before, v.After, v.AfterFailed}, func(s string) bool { return s == "" }))
		switch {
		case (v.Call == "") == (v.Done == ""):
			r.reportError(e, "never begins with call: NAME, or with done: NAME and without: NAME")
		case v.Done != "" && v.Without == "":
			r.reportError(e, "done needs without: the name of what has to be called as well")
		case conditions > 1:
			r.reportError(e, "before, after and after_failed exclude each other: make two entries")
		}
		c.Never = append(c.Never, v)
	}
}

// Always is a condition that has to hold at the end.
type Always struct {
	At   Place
	Cond *expr.CEL
}

// endLanguage is the expression language of the conditions in Always.
var endLanguage = sync.OnceValue(func() *expr.Language {
	return expr.NewLanguage("state", "error", "result", "shared", "params", "took", "called", "ok", "failed", "calls")
})

func (r *caseReader) readAlways(c *Case, n *yaml.Node) {
	for _, e := range listElements(n) {
		c.Always = append(c.Always, &Always{placeOf(e), r.readCEL(e, "always", endLanguage)})
	}
}

// Matches reports whether a call belongs to the named node, service or function.
func Matches(c *rehearse.Call, name string) bool {
	return c.Step() == name || c.Exec.Service == name || c.Exec.Func == name
}

package flow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Control params are the params that a node itself uses: how long it waits, for which key, and
// which branches it has. They come only from the definition of the node, as a value or a reference.
// Params of the task or the scope never set them. With the pocketflow profile the params of the
// task take precedence, as for all its params.
const (
	paramDelay    = "delay_ms"
	paramTimeout  = "timeout_ms"
	paramSignal   = "signal_key"
	paramApproval = "approval_key"
	paramServices = "services"
)

// controls lists the control params of each kind.
var controls = map[Kind][]string{
	KindTimer:     {paramDelay},
	KindWaitEvent: {paramSignal, paramTimeout},
	KindApproval:  {paramApproval},
	KindParallel:  {paramServices},
}

// Controls returns the names of the node's control params. A parallel that lists its branches has
// none.
func (n *PlanNode) Controls() []string {
	if n.Kind == KindParallel && len(n.Each.Branches) > 0 {
		return nil
	}
	return controls[n.Kind]
}

// withControls returns a step's params with the control params taken from the definition of the
// node, and an error if one of them is invalid. The key of a wait is included without its reference
// to shared.
func (sc *Scope) withControls(n *PlanNode, params, input json.RawMessage) (json.RawMessage, error) {
	names := n.Controls()
	if len(names) == 0 || sc.Plan.Pocketflow {
		return params, nil
	}
	var wrong error
	for _, name := range names {
		raw, there := expr.Field(n.Params, name)
		if !there && awaitedParams[n.Kind] != name {
			params = withField(params, name, nil)
			continue
		}
		v, err := sc.controlValue(n, name, raw, input)
		switch {
		case err != nil && there:
			v, wrong = nil, Errorf(Invalid, "params.%s: %s", name, err)
		case err != nil:
			v, wrong = nil, Errorf(Invalid, "params.%s %s", name, err)
		}
		params = withField(params, name, v)
	}
	return params, wrong
}

// controlValue returns the value of one control param.
func (sc *Scope) controlValue(n *PlanNode, name string, raw, input json.RawMessage) (json.RawMessage, error) {
	text, isText := expr.String(raw)
	if awaitedParams[n.Kind] == name {
		key, err := sc.waitKey(n, text, input)
		return expr.Quote(key), err
	}
	if !isText || !strings.HasPrefix(text, "$") {
		return raw, nil
	}
	v, ok := sc.controlRef(n, text, input)
	if !ok {
		return nil, fmt.Errorf("%.80q is no reference", text)
	}
	v = sc.openValue(v)
	switch kind := expr.KindOf(v); {
	case name == paramServices && kind != expr.KindArray:
		return nil, fmt.Errorf("%.80s must be a list of services, is %s", text, describeValue(v))
	case name == paramServices:
		return v, checkServices(text, v)
	case name != paramServices && kind != expr.KindNumber:
		return nil, fmt.Errorf("%.80s must be a number of milliseconds, is %s", text, describeValue(v))
	}
	return v, nil
}

// checkServices rejects a list with an element that is not the name of a service.
func checkServices(text string, list json.RawMessage) error {
	elements, _ := expr.Elements(list)
	for i, e := range elements {
		if _, isText := expr.String(e); !isText {
			return fmt.Errorf("%.80s[%d] must be the name of a service, is %s", text, i, describeValue(e))
		}
	}
	return nil
}

// controlRef returns the value that a control param refers to. $params means the params of the
// scope, without the params of the node. It returns false if the text is not a reference.
func (sc *Scope) controlRef(n *PlanNode, text string, input json.RawMessage) (json.RawMessage, bool) {
	if n.Dag == nil {
		ref := expr.ParseRef(text)
		return orNull(ref.Resolve(sc.referenceEnv(sc.Params, input))), !ref.Literal()
	}
	if path, ok := RunPath(text); ok {
		return orNull(expr.PathIn(sc.openValue(sc.runOf(n)), path, sc.pathOpener())), true
	}
	if strings.HasPrefix(text, sharedPrefix) {
		return orNull(expr.ParseRef(text).Resolve(sc.referenceEnv(nil, nil))), true
	}
	return nil, false
}

// RunPath returns the path inside the run's input that a reference of a dag names.
func RunPath(text string) (path string, ok bool) {
	for _, prefix := range []string{"$run", "$params", "$input"} {
		if path, ok := strings.CutPrefix(text, prefix); ok && (path == "" || path[0] == '.') {
			return path, true
		}
	}
	return "", false
}

// IsControlRef reports whether the text is a valid reference for a control param, in a scope of the
// given mode.
func IsControlRef(text string, mode Mode) bool {
	if mode == ModeGraph {
		return strings.HasPrefix(text, "$") && !expr.ParseRef(text).Literal()
	}
	_, ok := RunPath(text)
	return ok || strings.HasPrefix(text, sharedPrefix)
}

// withField returns an object with a value for one of its fields, or without the field if v is nil.
// It returns the object itself if nothing changes.
func withField(object json.RawMessage, name string, v json.RawMessage) json.RawMessage {
	old, there := expr.Field(object, name)
	switch {
	case there == (v != nil) && bytes.Equal(old, v):
		return object
	case v != nil:
		return expr.SetField(object, name, v)
	}
	return withoutFields(object, []string{name})
}

// withoutFields returns an object without some of its fields.
func withoutFields(object json.RawMessage, names []string) json.RawMessage {
	if !slices.ContainsFunc(names, func(name string) bool { _, there := expr.Field(object, name); return there }) {
		return object
	}
	members, _ := expr.Members(object)
	b := []byte{'{'}
	for _, m := range members {
		if slices.Contains(names, m.Key) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(expr.AppendQuote(b, m.Key), ':'), m.Value...)
	}
	return append(b, '}')
}

// checkRetriable returns an error if the node cannot be retried alone. An empty key means the whole
// task.
func (s *State) checkRetriable(key string) error {
	if key == "" {
		return nil
	}
	if s.Root.Plan.Mode() != ModeDag {
		return Errorf(Conflict, "the task is one of graph mode: it goes on where it failed, at no other node")
	}
	n := s.Root.Plan.Nodes[key]
	switch {
	case n == nil:
		return errNoStep(key)
	case s.Closing != nil && len(s.Closing.Undone) > 0:
		return Errorf(Conflict, "the task has undone what it did: retry all of it, or rerun it, which starts a new one")
	case s.Root.nodeState(n).Status() == StepCompleted || s.Root.nodeState(n).Status() == StepSkipped:
		return Errorf(Conflict, "step %.80q is %s: only one that failed can be retried", key, s.Root.nodeState(n).Status())
	}
	return nil
}

// reopenNode resets one failed node of an ended dag, so that it runs again, with the nodes that
// depend on it and the nodes that were interrupted. Other failed nodes stay failed, and the scope
// fails with their error in the end.
func (sc *Scope) reopenNode(key string) {
	named := sc.Plan.Nodes[key]
	if named == nil || sc.Plan.Dag == nil {
		return
	}
	again := map[int]bool{}
	for todo := []int{named.Dag.Index}; len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !again[i] {
			again[i] = true
			todo = append(todo, sc.Plan.Dag.List[i].Dag.Dependents...)
		}
	}
	sc.resetNodes(func(i int) bool {
		n := &sc.Nodes[i]
		return !n.Ended() || again[i] && n.Status() != StepCompleted
	})
	sc.Failed, sc.FailedAt, sc.EnterAt, sc.Retries = "", "", 0, 0
	for i, n := range sc.Plan.Dag.List {
		if is := &sc.Nodes[i]; is.Status() == StepFailed && sc.Failed == "" {
			sc.Failed, sc.FailedAt = n.Key+": "+cmp.Or(is.Rare().Error, "failed"), n.Key
		}
	}
}

package flow

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

var null = json.RawMessage("null")

// referenceEnv is what references mean in a scope.
func (sc *Scope) referenceEnv(params, input json.RawMessage) *expr.Env {
	if input == nil {
		input = sc.closingInput()
	}
	env := &expr.Env{
		Params: params,
		Input:  input,
		Shared: func(key string) (json.RawMessage, bool) {
			v, ok := sc.Shared[key]
			return v, ok
		},
		SharedAll: sc.SharedJSON,
	}
	sc.setOpeners(env)
	return env
}

// SharedJSON is the scope's shared state as one object, keys sorted.
func (sc *Scope) SharedJSON() json.RawMessage {
	size := 2
	for k, v := range sc.Shared {
		size += len(k) + len(v) + 4
	}
	b := append(make([]byte, 0, size), '{')
	for i, k := range slices.Sorted(maps.Keys(sc.Shared)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = expr.AppendQuote(b, k)
		b = append(b, ':')
		b = append(b, orNull(sc.Shared[k])...)
	}
	return append(b, '}')
}

func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return null
	}
	return v
}

// buildInput makes a node's input: as a reference when it is a part of params or shared, which is
// all an event needs to keep, else as a value.
func (sc *Scope) buildInput(n *PlanNode, params json.RawMessage) (value json.RawMessage, ref string) {
	switch {
	case n.Prep.HasMap:
		return sc.inputMap(n, params), ""
	case n.Prep.Key != "":
		return nil, n.Prep.Key
	default:
		return sc.closingInput(), ""
	}
}

func (sc *Scope) inputMap(n *PlanNode, params json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	for i, e := range n.Prep.Map {
		if i > 0 {
			b = append(b, ',')
		}
		b = expr.AppendQuote(b, e.Key)
		b = append(b, ':')
		switch {
		case sc.Plan.Flat:
			b = append(b, sc.resolveFlat(e.Text, params)...)
		case strings.HasPrefix(e.Text, "$"):
			b = append(b, orNull(e.Ref.Resolve(sc.referenceEnv(params, nil)))...)
		default:
			b = expr.AppendQuote(b, e.Text)
		}
	}
	return append(b, '}')
}

// resolveText says what the text of an input_key means at this moment.
func (sc *Scope) resolveText(text string, params json.RawMessage) json.RawMessage {
	switch {
	case sc.Plan.Flat:
		return sc.resolveFlat(text, params)
	case strings.HasPrefix(text, "$"):
		return orNull(expr.ParseRef(text).Resolve(sc.referenceEnv(params, nil)))
	default:
		return sc.sharedPath(text)
	}
}

// resolveFlat resolves a text inside a subflow, where `$params.x` and bare keys are single keys; a
// dotted path counts only when there is no such key.
func (sc *Scope) resolveFlat(text string, params json.RawMessage) json.RawMessage {
	if key, ok := strings.CutPrefix(text, "$params."); ok {
		if v, ok := expr.Field(params, key); ok {
			return v
		}
		return orNull(expr.PathIn(params, key, sc.pathOpener()))
	}
	return sc.sharedPath(strings.TrimPrefix(text, "$shared."))
}

func (sc *Scope) sharedPath(path string) json.RawMessage {
	if v, ok := sc.Shared[path]; ok {
		return orNull(v)
	}
	return orNull(expr.ParseRef("$shared." + path).Resolve(sc.referenceEnv(nil, nil)))
}

// awaitedValue is the value a wait_event or approval waits for: that of the signal that it has
// taken. With profile pocketflow it is what stands under its reference, where a word without `$` is
// a key of shared, and a subflow also sees what was signaled to the task.
func (s *State) awaitedValue(st *Step, param string) (value json.RawMessage, ok bool) {
	if !st.scope.Plan.Pocketflow {
		if st.Signal == nil {
			return null, true
		}
		return st.Signal.Value, true
	}
	raw, _ := expr.Field(st.Params, param)
	text, ok := expr.String(raw)
	if !ok || text == "" {
		return nil, false
	}
	if !strings.HasPrefix(text, "$") {
		text = "$shared." + text
	}
	ref := expr.ParseRef(text)
	value = orNull(ref.Resolve(st.scope.referenceEnv(st.Params, st.Input)))
	if st.scope.parent != nil && expr.KindOf(value) == expr.KindNull {
		value = orNull(ref.Resolve(s.Root.referenceEnv(st.Params, st.Input)))
	}
	return value, true
}

// parallelBranches are a parallel's: those of the definition, else the strings of params.services.
func (n *PlanNode) parallelBranches(params json.RawMessage, sc *Scope) (names []string, execs []Exec) {
	for _, b := range n.Each.Branches {
		names, execs = append(names, b.Name), append(execs, b.Exec)
	}
	if execs != nil {
		return names, execs
	}
	list, _ := expr.Field(params, paramServices)
	members, _ := expr.Elements(sc.openValue(list))
	for _, m := range members {
		if name, ok := expr.String(m); ok {
			exec := n.Exec
			exec.Service = name
			names, execs = append(names, name), append(execs, exec)
		}
	}
	return names, execs
}

// inputSource returns the name of the place from which a prep takes its input.
func (p *PlanPrep) inputSource() string {
	switch {
	case p.HasMap:
		return "prep.input_map"
	case p.Key != "":
		return p.Key
	}
	return "a node without prep.input_key"
}

// unitInput is what a unit works on.
func (st *Step) unitInput(i int) json.RawMessage { return st.scope.mode.unitInput(st, i) }

// stepInput is what a step works on.
func (st *Step) stepInput() json.RawMessage { return st.scope.mode.stepInput(st) }

// mergeParams returns the params of a unit's job: those of its branch or item laid over those of the
// step. A program among them is the definition's, never one that the task was started with.
func mergeParams(st *Step, exec *Exec) json.RawMessage {
	if len(exec.Params) > 0 && !st.Node.Single {
		return expr.Merge(st.jobParams, exec.Params)
	}
	return st.jobParams
}

// withOwnProgram returns params in which only the definition's own params name a program, in all
// profiles: a worker or a starter carries it out. Other values of that name are left alone. Letter
// case does not matter to all readers of JSON.
func withOwnProgram(params, own json.RawMessage) json.RawMessage {
	members, _ := expr.Members(params)
	var foreign []string
	for _, m := range members {
		if strings.EqualFold(m.Key, ProgramParam) && expr.KindOf(m.Value) == expr.KindObject {
			if said, there := expr.Field(own, m.Key); !there || !bytes.Equal(said, m.Value) {
				foreign = append(foreign, m.Key)
			}
		}
	}
	if foreign == nil {
		return params
	}
	params = withoutFields(params, foreign)
	for _, name := range foreign {
		if said, there := expr.Field(own, name); there {
			params = expr.Merge(params, fieldOf(name, said))
		}
	}
	return params
}

// objectOr is a value if it is an object.
func objectOr(v json.RawMessage) json.RawMessage {
	if expr.KindOf(v) == expr.KindObject {
		return v
	}
	return nil
}

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

// referenceEnv returns the environment for references in a scope.
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

// SharedJSON returns the scope's shared state as one object with sorted keys.
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

// buildInput returns the input of a node. An input that is a part of params or shared is returned
// as a reference, so the event need not hold the value.
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

// resolveText returns the current value of the text of an input_key.
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

// resolveFlat resolves a text inside a subflow: `$params.KEY`, or a key of shared with or without
// `$shared.`. A key may contain dots: the text counts as a path only if no such key exists.
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

// awaitedValue returns the value that a wait_event or approval waits for: that of the signal that
// the step has consumed.
//
// With the pocketflow profile the value is the current value of the reference. Without a `$`, the
// reference is a key of shared. A subflow then also sees values that were signaled to the task.
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

// parallelBranches returns the branches of a parallel: those of the definition, else the strings in
// params.services.
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

// inputSource returns where a prep takes its input from, for error messages.
func (p *PlanPrep) inputSource() string {
	switch {
	case p.HasMap:
		return "prep.input_map"
	case p.Key != "":
		return p.Key
	}
	return "a node without prep.input_key"
}

// unitInput returns the input of a unit.
func (st *Step) unitInput(i int) json.RawMessage { return st.scope.mode.unitInput(st, i) }

// stepInput returns the input of a step.
func (st *Step) stepInput() json.RawMessage { return st.scope.mode.stepInput(st) }

// mergeParams returns the params of a unit's job: those of the step, with the params of its branch
// or item merged over them. A program in them always comes from the definition, never from the
// task's params.
func mergeParams(st *Step, exec *Exec) json.RawMessage {
	if len(exec.Params) > 0 && !st.Node.Single {
		return expr.Merge(st.jobParams, exec.Params)
	}
	return st.jobParams
}

// withOwnProgram returns params in which only the definition may name a program, because a worker
// or starter executes that program. This holds for all profiles. Values of that name that are not
// objects stay. Letter case is ignored, because some readers of JSON ignore it.
func withOwnProgram(params, own json.RawMessage) json.RawMessage {
	if !mayNameProgram(params) {
		return params
	}
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
			params = expr.SetField(params, name, said)
		}
	}
	return params
}

// mayNameProgram reports whether params may have a member named like ProgramParam, in any letter
// case or with escaped characters. It only looks at quotes, because every step calls it.
func mayNameProgram(params []byte) bool {
	const quoted = `"` + ProgramParam + `"`
	if bytes.IndexByte(params, '\\') >= 0 {
		return true
	}
	for {
		quote := bytes.IndexByte(params, '"')
		if quote < 0 || len(params)-quote < len(quoted) {
			return false
		}
		params = params[quote:]
		if strings.EqualFold(string(params[:len(quoted)]), quoted) {
			return true
		}
		params = params[1:]
	}
}

// objectOr returns the value if it is an object, otherwise nil.
func objectOr(v json.RawMessage) json.RawMessage {
	if expr.KindOf(v) == expr.KindObject {
		return v
	}
	return nil
}

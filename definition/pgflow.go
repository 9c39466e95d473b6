package definition

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// pgflowWord is the place in a definition for a field that has another name in pgflow.
type pgflowWord struct {
	path []string // path from the flow or node, such as retry, max_attempts
	list bool     // the field is a list of such values
}

// pgflowFlowWords maps pgflow's names of flow fields, in lower case without underscores. The
// timeout of a flow there is that of its steps.
var pgflowFlowWords = map[string]pgflowWord{
	"slug":        {path: []string{"name"}},
	"maxattempts": {path: []string{"defaults", "retry", "max_attempts"}},
	"basedelay":   {path: []string{"defaults", "retry", "delay"}},
	"timeout":     {path: []string{"defaults", "timeout"}},
}

// pgflowStepWords maps pgflow's names of step fields in the same way.
var pgflowStepWords = map[string]pgflowWord{
	"dependson":     {path: []string{"depends_on"}},
	"maxattempts":   {path: []string{"retry", "max_attempts"}},
	"basedelay":     {path: []string{"retry", "delay"}},
	"startdelay":    {path: []string{"start_delay"}},
	"if":            {path: []string{"when", "if"}},
	"ifnot":         {path: []string{"when", "if_not"}},
	"whenunmet":     {path: []string{"whenUnmet"}},
	"whenexhausted": {path: []string{"on_exhausted"}},
	"steptype":      {path: []string{"kind"}},
	"runner":        {path: []string{"labels"}, list: true},
}

// bareName returns a name in lower case without underscores.
func bareName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "") }

// respellPgflow returns the definition with pgflow's field names replaced by the names of
// definitions, in parts with the pgflow profile. Every part keeps its position in the text.
// inherited means that the profile applies where no profile is named.
func (r *Reporter) respellPgflow(v textValue, inherited bool, at *Place) textValue {
	if v.kind() != expr.KindObject || at != nil && at.depth > maxNesting {
		return v
	}
	pgflow := namesPgflow(v, inherited)
	o, changed := &objectValue{at: v.position(), whole: true}, pgflow
	for _, m := range v.members() {
		if strings.EqualFold(m.key, "nodes") {
			nodes := r.respellNodes(m.value, pgflow, at.Key("nodes"))
			changed = changed || nodes != m.value
			m.value = nodes
		}
		o.addMember(r, m, pgflowFlowWords, pgflow, at)
	}
	if !changed {
		return v
	}
	return o
}

// namesPgflow reports whether a definition has the pgflow profile. Only a dag inherits it.
func namesPgflow(v textValue, inherited bool) bool {
	if m := memberOf(v.members(), profileField); m != nil && m.value.kind() != expr.KindNull {
		if profile, _ := expr.String(m.value.rawJSON()); profile != "" {
			return profile == ProfilePgflow
		}
	}
	if !inherited {
		return false
	}
	if memberOf(v.members(), "start") != nil || memberOf(v.members(), "edges") != nil {
		return false
	}
	m := memberOf(v.members(), "mode")
	if m == nil || m.value.kind() == expr.KindNull {
		return true
	}
	mode, _ := expr.String(m.value.rawJSON())
	return mode == string(flow.ModeDag)
}

// respellNodes replaces names in the nodes of a definition and in their nested flows.
func (r *Reporter) respellNodes(v textValue, pgflow bool, at *Place) textValue {
	if v.kind() != expr.KindObject {
		return v
	}
	nodes, changed := &objectValue{at: v.position(), whole: true}, false
	for _, m := range v.members() {
		node := r.respellNode(m.value, pgflow, at.Key(m.key))
		changed = changed || node != m.value
		nodes.fields = append(nodes.fields, objectMember{m.key, m.at, node})
	}
	if !changed {
		return v
	}
	return nodes
}

func (r *Reporter) respellNode(v textValue, pgflow bool, at *Place) textValue {
	if v.kind() != expr.KindObject {
		return v
	}
	o, changed := &objectValue{at: v.position(), whole: true}, pgflow
	for _, m := range v.members() {
		if strings.EqualFold(m.key, "flow") {
			inner := r.respellPgflow(m.value, pgflow, at.Key("flow"))
			changed = changed || inner != m.value
			m.value = inner
		}
		o.addMember(r, m, pgflowStepWords, pgflow, at)
	}
	if !changed {
		return v
	}
	return o
}

// objectValue is an object that replaces another one, or some of its members.
type objectValue struct {
	at           textPosition
	fields       []objectMember
	whole        bool                    // it contains the members of a written object
	addedObjects map[string]*objectValue // objects created for words with a path, by member name
}

func (o *objectValue) kind() expr.Kind              { return expr.KindObject }
func (o *objectValue) rawJSON() json.RawMessage     { return appendJSON(nil, o) }
func (o *objectValue) members() []objectMember      { return o.fields }
func (o *objectValue) elements() []textValue        { return nil }
func (o *objectValue) position() textPosition       { return o.at }
func (o *objectValue) characterAt(int) textPosition { return o.at }

// addMember adds a member. If the words contain another name for the member, that name is used.
func (o *objectValue) addMember(r *Reporter, m objectMember, words map[string]pgflowWord, respell bool, at *Place) {
	word, known := words[bareName(m.key)]
	switch {
	case !respell || !known:
		o.putMember(m)
		return
	case m.value.kind() == expr.KindNull:
		return
	case word.list && m.value.kind() != expr.KindArray:
		m.value = &listValue{m.value}
	}
	ours, last := at, len(word.path)-1
	for _, name := range word.path {
		ours = ours.Key(name)
	}
	r.renamePath(ours, at.Key(m.key))
	for _, name := range word.path[:last] {
		o = o.memberObject(name, m.at)
	}
	m.key = word.path[last]
	o.putMember(m)
}

// putMember adds a member. If an object was created for words with a path, putMember adds the
// member's own members to the object.
func (o *objectValue) putMember(m objectMember) {
	if made := o.addedObjects[m.key]; made != nil && !made.whole && m.value.kind() == expr.KindObject {
		for _, inner := range m.value.members() {
			made.putMember(inner)
		}
		made.whole = true
		return
	}
	o.fields = append(o.fields, m)
}

// memberObject returns the object of a member, so that members can be added to it.
func (o *objectValue) memberObject(key string, at textPosition) *objectValue {
	if made := o.addedObjects[key]; made != nil {
		return made
	}
	made := &objectValue{at: at}
	if found := memberOf(o.fields, key); found != nil && found.value.kind() == expr.KindObject {
		made.at, made.whole = found.value.position(), true
		made.fields = slices.Clone(found.value.members())
		found.value = made
	} else {
		o.fields = append(o.fields, objectMember{key, at, made})
	}
	if o.addedObjects == nil {
		o.addedObjects = map[string]*objectValue{}
	}
	o.addedObjects[key] = made
	return made
}

// listValue is a list of one value that was written without brackets.
type listValue struct{ one textValue }

func (l *listValue) kind() expr.Kind                { return expr.KindArray }
func (l *listValue) rawJSON() json.RawMessage       { return appendJSON(nil, l) }
func (l *listValue) members() []objectMember        { return nil }
func (l *listValue) elements() []textValue          { return []textValue{l.one} }
func (l *listValue) position() textPosition         { return l.one.position() }
func (l *listValue) characterAt(n int) textPosition { return l.one.characterAt(n) }

package compile

import (
	"encoding/json"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// planKeys returns the keys of a node or flow. It returns nil if there are none.
func planKeys(f *definition.KeyFields, priority json.RawMessage) *flow.Keys {
	if f.Concurrency == nil && f.Rate == nil {
		return nil
	}
	k := &flow.Keys{Concurrency: keyLimit(f.Concurrency), Rate: keyLimit(f.Rate), Priority: priorityText(f.Priority)}
	if len(f.Priority) == 0 {
		k.Priority = priorityText(priority)
	}
	for _, text := range append(keyTexts(f.Concurrency), keyTexts(f.Rate)...) {
		k.PerUnit = k.PerUnit || isPerUnit(text)
	}
	k.PerUnit = k.PerUnit || isPerUnit(k.Priority.Text)
	return k
}

func keyTexts(s *definition.KeySpec) []string {
	if s == nil {
		return nil
	}
	return []string{s.Key, s.Fair}
}

// isPerUnit reports whether a text may have a different value for each unit.
func isPerUnit(text string) bool {
	return strings.HasPrefix(text, itemRef) || strings.HasPrefix(text, "$input")
}

const (
	itemRef = "$item"
	runRef  = "$run"
)

func keyLimit(s *definition.KeySpec) *flow.KeyLimit {
	if s == nil {
		return nil
	}
	l := &flow.KeyLimit{Name: s.Name, Key: keyText(s.Key), Fair: keyText(s.Fair),
		Limit: max(s.Limit, 1), PerMS: s.Per.MS, Full: flow.WhenFull(s.WhenFull)}
	if s.WhenFull == definition.FullQueue {
		l.Full = flow.FullQueue
	}
	return l
}

// keyText parses the reference of a key. Its source is treated like $input.
func keyText(text string) flow.KeyText {
	k := flow.KeyText{Text: text}
	for prefix, from := range map[string]flow.KeySource{itemRef: flow.KeyFromItem, runRef: flow.KeyFromRun} {
		if rest, ok := cutRefName(text, prefix); ok {
			k.From, k.Ref = from, expr.ParseRef("$input"+rest)
			return k
		}
	}
	k.Ref = expr.ParseRef(text)
	return k
}

// cutRefName returns the rest of a reference after its first name.
func cutRefName(text, name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, name)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// priorityText returns a number as a text, or a reference.
func priorityText(raw json.RawMessage) flow.KeyText {
	if len(raw) == 0 {
		return flow.KeyText{}
	}
	if text, ok := expr.String(raw); ok {
		return keyText(text)
	}
	return keyText(string(raw))
}

// nodeKeys sets the keys of a node with jobs.
func (l *lowerer) nodeKeys(n *definition.Node, p *flow.PlanNode) {
	if hasJobs(p) && p.Exec.Type != flow.ExecDirect {
		p.Keys = planKeys(&n.KeyFields, l.priority)
	}
}

// hasJobs reports whether a node has jobs.
func hasJobs(p *flow.PlanNode) bool {
	switch p.Kind {
	case flow.KindExecutor, flow.KindParallel, flow.KindForeach, flow.KindFanout:
		return true
	case flow.KindOutput:
		return p.Single
	}
	return false
}

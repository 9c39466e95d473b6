package compile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// sharedScope holds the keys of shared that nodes of a scope in graph mode write or wait for. If
// others may set keys too, a reference is only reported if it looks like a misspelled key or cannot
// have been intended.
type sharedScope struct {
	*graphWarner
	flat    bool
	written map[string]bool
	// others may set keys: answers to waiting nodes, or compensations of a subflow
	others        bool
	unwrittenHint string // text about a key that no node writes
}

const sharedRef = "$shared."

// sharedKeys warns of keys of shared that no node writes.
func (c *graphWarner) sharedKeys(s *scopeSource, g *flow.PlanScope, at *definition.Place) {
	sc := &sharedScope{graphWarner: c, flat: s.isFlat(), written: map[string]bool{}, others: s.depth == 0 && othersSet(s.nodes),
		unwrittenHint: ", and none waits for a signal, which could set it"}
	if s.depth > 0 {
		sc.unwrittenHint = " here: a flow inside another one has a shared state of its own"
	}
	for _, n := range s.nodes {
		sc.addWritten(orEmpty(n))
	}
	special := specialKeys(s.nodes, s.finally)
	for _, key := range definition.InOrder(s.nodes) {
		// compensating nodes use the shared state of the whole flow
		if s.depth == 0 || !special[key] {
			sc.checkNodeReads(s.nodes[key], g.Nodes[key], at.Key("nodes").Key(key))
		}
	}
	if g.Result != "" && !sc.written[g.Result] {
		c.Warnf(at.Key("result"), "no node writes the key %.80q of shared%s", g.Result, guessNode(g.Result, sc.written))
	}
}

// othersSet reports whether more than the nodes of the root may set keys of the root's shared:
// signals to waiting nodes, and compensations of nodes in a subflow. An unavailable nested flow
// counts as one with such nodes.
func othersSet(nodes map[string]*definition.Node) bool {
	for _, n := range nodes {
		below := nodesInside(n)
		switch {
		case n == nil:
		case signalKeys[flow.Kind(n.Kind)] != "", n.Flow != nil && n.Flow.Definition == nil,
			len(specialKeys(below, "")) > 0, othersSet(below):
			return true
		}
	}
	return false
}

// nodesInside returns the nodes of the nested flow of a node.
func nodesInside(n *definition.Node) map[string]*definition.Node {
	switch {
	case n == nil:
	case n.Flow != nil && n.Flow.Definition != nil:
		return n.Flow.Nodes
	case n.Subflow != nil:
		return n.Subflow.Nodes
	}
	return nil
}

// addWritten adds the keys that a node writes, and the key of a signal that it waits for.
func (sc *sharedScope) addWritten(n *definition.Node) {
	if n.Post.OutputKey != "" {
		sc.written[n.Post.OutputKey] = true
	}
	for key := range n.Post.OutputMap {
		sc.written[key] = true
	}
	if param := signalKeys[flow.Kind(n.Kind)]; param != "" {
		raw, _ := expr.Field(n.Params, param)
		text, _ := expr.String(raw)
		sc.written[firstOf(strings.TrimPrefix(text, sharedRef))] = true
	}
}

// firstOf returns the first key of a path.
func firstOf(path string) string {
	if i := strings.IndexAny(path, ".["); i > 0 {
		return path[:i]
	}
	return path
}

func (sc *sharedScope) writtenKeys() []string { return slices.Collect(maps.Keys(sc.written)) }

// checkNodeReads checks the keys that a node reads. Its plan is nil if it belongs to the closing.
func (sc *sharedScope) checkNodeReads(n *definition.Node, p *flow.PlanNode, at *definition.Place) {
	n = orEmpty(n)
	prep := at.Key("prep")
	if n.Prep.InputMap == nil {
		sc.checkInputKey(n.Prep.InputKey, prep.Key("input_key"))
	}
	for _, key := range slices.Sorted(maps.Keys(n.Prep.InputMap)) {
		place := prep.Key("input_map").Key(key)
		if sc.flat {
			sc.checkInputKey(n.Prep.InputMap[key], place)
			continue
		}
		sc.checkText(n.Prep.InputMap[key], place)
	}
	for i, choice := range n.ChoiceCases {
		place := at.Key("choice_cases").Index(i).Key("expr")
		if expr.KindOf(choice.Expr) == expr.KindObject {
			sc.checkTexts(choice.Expr, place)
		} else if p != nil && i < len(p.Cases) {
			sc.checkCELReads(p.Cases[i].CEL, place)
		}
	}
}

// checkInputKey checks a text that is a key of shared if it is no reference.
func (sc *sharedScope) checkInputKey(text string, at *definition.Place) {
	if text == "" || strings.HasPrefix(text, "$") || missingDollarRef(text) != "" {
		sc.checkText(text, at)
		return
	}
	if !sc.written[text] && !sc.written[firstOf(text)] {
		sc.Warnf(at, "%.80q is read as the key %.80q of shared, which no node writes%s", text,
			firstOf(text), definition.Guess{Word: text, Names: sc.writtenKeys, Otherwise: "$params." + text})
	}
}

// checkText checks a text that is a literal if it is no reference.
func (sc *sharedScope) checkText(text string, at *definition.Place) {
	key, isShared := strings.CutPrefix(text, sharedRef)
	switch {
	case isShared && key != "" && !sc.written[key]:
		sc.checkWrittenKey(firstOf(key), sharedRef, at)
	case missingDollarRef(text) != "":
		sc.Warnf(at, "%.80q is a text: references begin with $, so write $%.80s", text, text)
	}
}

// checkCELReads checks the keys that a CEL expression reads.
func (sc *sharedScope) checkCELReads(compiled *expr.CEL, at *definition.Place) {
	for _, read := range compiled.Reads() {
		if read.Path[0] == "shared" {
			sc.checkWrittenKey(read.Path[1], "shared.", at.Character(read.At))
		}
	}
}

// checkWrittenKey warns of a key that no node writes. prefix is the notation of the reference.
func (sc *sharedScope) checkWrittenKey(key, prefix string, at *definition.Place) {
	if sc.written[key] {
		return
	}
	if meant := guessName(sc.graphWarner, key, sc.written); meant != "" {
		sc.Warnf(at, "no node writes the key %.80q of shared: did you mean %s%s?", key, prefix, meant)
	} else if !sc.others {
		sc.Warnf(at, "no node writes the key %.80q of shared%s", key, sc.unwrittenHint)
	}
}

// missingDollarRef returns the path that a text would refer to if it began with $, or "".
func missingDollarRef(text string) string {
	for _, prefix := range []string{"params.", "shared.", "input."} {
		if rest, ok := strings.CutPrefix(text, prefix); ok && rest != "" && !strings.ContainsAny(rest, " \t\n") {
			return rest
		}
	}
	return ""
}

// checkTexts checks all texts in a JSON expression.
func (sc *sharedScope) checkTexts(raw json.RawMessage, at *definition.Place) {
	switch expr.KindOf(raw) {
	case expr.KindString:
		if text, ok := expr.String(raw); ok {
			sc.checkText(text, at)
		}
	case expr.KindArray:
		elements, _ := expr.Elements(raw)
		for i, e := range elements {
			sc.checkTexts(e, at.Index(i))
		}
	case expr.KindObject:
		members, _ := expr.Members(raw)
		for _, m := range members {
			sc.checkTexts(m.Value, at.Key(m.Key))
		}
	}
}

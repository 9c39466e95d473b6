package definition

import (
	"maps"
	"slices"
	"strings"
)

// graphWords and dagWords map the words of kind to the kinds of the tables.
var (
	graphWords = map[string]string{
		"executor": "executor", "remote": "executor", "choice": "choice", "parallel": "parallel",
		"foreach": "foreach", "subflow": "subflow", "timer": "timer", "wait_event": "wait_event",
		"approval": "approval",
	}
	dagWords = map[string]string{
		"executor": "executor", "remote": "executor", "single": "executor", "fanout": "fanout",
		"map": "fanout", "foreach": "fanout", "parallel": "fanout", "branch": "branch",
		"subflow": "branch", "timer": "timer", "wait_event": "wait_event", "approval": "approval",
		"output": "output",
	}
)

// obeyed adds the restrictions of the field tables: in graphs without the profile pocketflow, and
// in dags. Conditions that depend on other fields are left to the compiler.
func (s *schema) obeyed() {
	s.defs["GraphNode"] = s.nodeRules(false, "GraphNode")
	s.defs["DagNode"] = s.nodeRules(true, "DagNode")
	definition := s.defs["Definition"].(obj)
	named := func(words ...string) obj {
		return obj{"properties": obj{"profile": obj{"enum": words}}, "required": []string{"profile"}}
	}
	moded := obj{"required": []string{"mode"}}
	mode := func(word string) obj {
		return obj{"properties": obj{"mode": obj{"const": word}}, "required": []string{"mode"}}
	}
	edged := obj{"anyOf": []obj{
		{"properties": obj{"start": obj{"minLength": 1}}, "required": []string{"start"}},
		{"properties": obj{"edges": obj{"minItems": 1}}, "required": []string{"edges"}},
	}}
	waits := obj{"properties": obj{"nodes": obj{"not": obj{"additionalProperties": obj{"not": obj{
		"properties": obj{"depends_on": obj{"minItems": 1}}, "required": []string{"depends_on"}}}}}}}
	definition["allOf"] = []obj{
		{
			"if": obj{"not": named("pocketflow"), "anyOf": []obj{mode("graph"),
				{"not": obj{"anyOf": []obj{moded, named("ork", "pgflow")}}, "allOf": []obj{edged}}}},
			"then": s.flowRules(false, "GraphNode"),
		},
		{
			"if": obj{"anyOf": []obj{mode("dag"), {"not": moded, "allOf": []obj{named("ork", "pgflow")}},
				{"not": obj{"anyOf": []obj{moded, named("pocketflow"), edged}}, "allOf": []obj{waits}}}},
			"then": s.flowRules(true, "DagNode"),
		},
	}
	s.overrideRules()
}

// flowRules describes a flow of a mode: the fields that it uses, and its nodes.
func (s *schema) flowRules(dag bool, node string) obj {
	properties := obj{"nodes": obj{"additionalProperties": obj{"$ref": "#/$defs/" + node}}}
	for _, f := range FlowFields {
		obeyed := f.Graph
		if dag {
			obeyed = f.Dag
		}
		if obeyed == Nowhere {
			properties[f.Name] = false
		}
	}
	return obj{"properties": properties}
}

// nodeRules describes the nodes of a mode: for each kind the fields that it never uses.
func (s *schema) nodeRules(dag bool, name string) obj {
	words, d := graphWords, obj{"description": "which fields nodes of a graph obey, by kind"}
	if dag {
		words, d = dagWords, obj{"description": "which fields nodes of a dag obey, by kind"}
	} else {
		inside := obj{"additionalProperties": obj{"$ref": "#/$defs/" + name}}
		d["properties"] = obj{"subflow": obj{"properties": obj{"nodes": inside}}}
	}
	var rules []obj
	for _, word := range slices.Sorted(maps.Keys(words)) {
		is := obj{"properties": obj{"kind": obj{"const": word}}, "required": []string{"kind"}}
		if word == "executor" {
			is = obj{"properties": obj{"kind": obj{"enum": []string{"", word}}}}
		}
		if dag && dagWords[word] == "executor" { // each makes it a fanout
			is["not"] = obj{"required": []string{"each"}}
		}
		rules = append(rules, obj{"if": is, "then": obj{"properties": refusedFor(dag, word)}})
	}
	d["allOf"] = rules
	return d
}

// refusedFor describes the fields that nodes of a kind must not have. A node that runs in the
// closing of a dag uses the same fields as one of a graph.
func refusedFor(dag bool, word string) obj {
	properties := obj{}
	for i := range NodeFields {
		f := &NodeFields[i]
		kind, known := graphWords[word]
		obeyed := known && len(f.Graph.ConditionsOf(kind)) > 0
		if dag {
			obeyed = obeyed || len(f.Dag.ConditionsOf(dagWords[word])) > 0
		}
		if !obeyed {
			refuse(properties, f.Name)
		}
	}
	return properties
}

// refuse forbids a field in the properties.
func refuse(properties obj, name string) {
	holder, field, nested := strings.Cut(name, ".")
	if !nested {
		properties[name] = false
		return
	}
	if properties[holder] == nil {
		properties[holder] = obj{"properties": obj{}}
	}
	properties[holder].(obj)["properties"].(obj)[field] = false
}

// overrideRules forbids, in each list of overrides, the fields that its entries do not use.
func (s *schema) overrideRules() {
	properties := s.defs["Node"].(obj)["properties"].(obj)
	for _, list := range []string{ParallelExecs, ForeachExecs, SubflowExecs} {
		refused := obj{}
		for _, f := range OverrideFields {
			if !f.ObeyedIn(list) {
				refused[f.Name] = false
			}
		}
		items := maps.Clone(properties[list].(obj)["items"].(obj))
		items["properties"] = refused
		properties[list].(obj)["items"] = items
	}
}

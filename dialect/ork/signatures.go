package ork

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Signatures are the parameter and result types of a file's functions. A type without a name in
// workflow files is null.
type Signatures struct {
	File      string          `json:"file"`
	Types     json.RawMessage `json:"types"`
	Functions json.RawMessage `json:"functions"`
}

// YAML returns the types, and for each function the fields of a task in a workflow file.
func (s Signatures) YAML() string {
	var b strings.Builder
	if types, _ := expr.Members(s.Types); len(types) > 0 {
		b.WriteString("types:\n")
		for _, t := range types {
			writeFields(&b, "  ", t.Key, t.Value)
		}
	}
	b.WriteString("functions:\n")
	functions, _ := expr.Members(s.Functions)
	for _, f := range functions {
		fmt.Fprintf(&b, "  %s:\n", f.Key)
		in, _ := expr.Field(f.Value, "input_type")
		writeFields(&b, "    ", "input_type", in)
		required, _ := expr.Field(f.Value, "required")
		fmt.Fprintf(&b, "    required: %s\n", inFlowStyle(required))
		out, _ := expr.Field(f.Value, "output_type")
		fmt.Fprintf(&b, "    output_type: %s\n", orUnknown(out))
	}
	return b.String()
}

func writeFields(b *strings.Builder, indent, name string, fields json.RawMessage) {
	all, _ := expr.Members(fields)
	if len(all) == 0 {
		fmt.Fprintf(b, "%s%s: {}\n", indent, name)
		return
	}
	fmt.Fprintf(b, "%s%s:\n", indent, name)
	for _, f := range all {
		fmt.Fprintf(b, "%s  %s: %s\n", indent, f.Key, orUnknown(f.Value))
	}
}

func orUnknown(of json.RawMessage) string {
	if expr.KindOf(of) == expr.KindNull || len(of) == 0 {
		return "~ # there is no word for this type"
	}
	return inFlowStyle(of)
}

// inFlowStyle returns a type, or a list of names, in one line of YAML.
func inFlowStyle(of json.RawMessage) string {
	if text, ok := expr.String(of); ok {
		return text
	}
	elements, _ := expr.Elements(of)
	texts := make([]string, len(elements))
	for i, e := range elements {
		// a question mark has a meaning between brackets
		if texts[i] = inFlowStyle(e); strings.HasSuffix(texts[i], "?") {
			texts[i] = `"` + texts[i] + `"`
		}
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

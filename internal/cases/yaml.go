package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
)

// maxText bounds a file of cases.
const maxText = 4 << 20

// Place is where something stands in a file.
type Place struct{ Line, Column int }

func placeOf(n *yaml.Node) Place { return Place{n.Line, n.Column} }

// reader goes through a file and notes what is wrong with it.
type reader struct {
	problems define.Problems
}

// wrong tells a mistake.
func (r *reader) wrong(n *yaml.Node, format string, args ...any) {
	p := define.Problem{Severity: define.SeverityError, Msg: fmt.Sprintf(format, args...)}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	r.problems = append(r.problems, p)
}

// documents reads all documents of a text.
func (r *reader) documents(text []byte) (all []*yaml.Node) {
	if len(text) > maxText {
		r.wrong(&yaml.Node{Line: 1, Column: 1}, "the file has %d bytes, more than the limit of %d: divide it", len(text), maxText)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			r.syntax(text, err)
			return nil
		}
		if len(doc.Content) == 1 && doc.Content[0].ShortTag() != "!!null" {
			all = append(all, doc.Content[0])
		}
	}
}

// syntax tells an error of the parser, which knows the line but not the column.
func (r *reader) syntax(text []byte, err error) {
	msg, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		number, rest, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			msg, line = rest, n
		}
	}
	column := 1
	if lines := bytes.Split(text, []byte("\n")); line <= len(lines) {
		column += len(lines[line-1]) - len(bytes.TrimLeft(lines[line-1], " \t"))
	}
	r.wrong(&yaml.Node{Line: line, Column: column}, "invalid YAML: %s", msg)
}

// pair is an entry of a mapping.
type pair struct {
	key   *yaml.Node
	value *yaml.Node
}

// resolved is what a node stands for.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// pairs are the entries of a mapping, those that are merged into it included. A key that is there twice is told.
func (r *reader) pairs(n *yaml.Node) (all []pair) {
	n = resolved(n)
	at := map[string]int{}
	var merged []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolved(n.Content[i]), resolved(n.Content[i+1])
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, r.merged(value)...)
		case key.Kind != yaml.ScalarNode:
			r.wrong(key, "keys must be texts")
		case at[key.Value] > 0:
			r.wrong(key, "the key %s is there twice, first in line %d", key.Value, at[key.Value])
		default:
			at[key.Value] = key.Line
			all = append(all, pair{key, value})
		}
	}
	for _, p := range merged {
		if at[p.key.Value] == 0 {
			at[p.key.Value] = p.key.Line
			all = append(all, p)
		}
	}
	return all
}

// merged is what stands behind the key <<.
func (r *reader) merged(n *yaml.Node) (all []pair) {
	switch n.Kind {
	case yaml.MappingNode:
		return r.pairs(n)
	case yaml.SequenceNode:
		for _, e := range n.Content {
			all = append(all, r.merged(resolved(e))...)
		}
		return all
	}
	r.wrong(n, "only mappings can be merged")
	return nil
}

// fields reads a mapping whose keys are known.
func (r *reader) fields(n *yaml.Node, what string, known map[string]func(*yaml.Node)) {
	if !r.is(n, yaml.MappingNode, what) {
		return
	}
	for _, p := range r.pairs(n) {
		if read := known[p.key.Value]; read != nil {
			read(p.value)
			continue
		}
		r.unknown(p.key, "field of "+what, p.key.Value, slices.Sorted(maps.Keys(known)))
	}
}

// is tells that a node is of another kind than it should be.
func (r *reader) is(n *yaml.Node, kind yaml.Kind, what string) bool {
	if resolved(n).Kind == kind {
		return true
	}
	r.wrong(n, "%s has to be %s, but is %s", what, kinds[kind], kinds[resolved(n).Kind])
	return false
}

var kinds = map[yaml.Kind]string{yaml.MappingNode: "a mapping (key: value)", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}

// unknown tells a name that is not one, and which one may have been meant.
func (r *reader) unknown(n *yaml.Node, what, name string, names []string) {
	r.wrong(n, "unknown %s: %s%s", what, name, hint(name, names))
}

// elements are those of a list; what is no list is a list of itself.
func elements(n *yaml.Node) (all []*yaml.Node) {
	n = resolved(n)
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	for _, e := range n.Content {
		all = append(all, resolved(e))
	}
	return all
}

// text reads a single value as a text.
func (r *reader) text(n *yaml.Node, what string) string {
	if !r.is(n, yaml.ScalarNode, what) {
		return ""
	}
	return resolved(n).Value
}

// texts reads a list of texts, or one.
func (r *reader) texts(n *yaml.Node, what string) (all []string) {
	for _, e := range elements(n) {
		all = append(all, r.text(e, what))
	}
	return all
}

func (r *reader) number(n *yaml.Node, what string, least int) int {
	v, err := strconv.Atoi(resolved(n).Value)
	if err != nil || v < least || resolved(n).Kind != yaml.ScalarNode {
		r.wrong(n, "%s has to be a whole number, at least %d", what, least)
		return least
	}
	return v
}

func (r *reader) boolean(n *yaml.Node, what string) bool {
	if n = resolved(n); n.ShortTag() != "!!bool" {
		r.wrong(n, "%s has to be true or false", what)
	}
	return strings.EqualFold(n.Value, "true")
}

// value reads any value as JSON.
func (r *reader) value(n *yaml.Node) json.RawMessage { return r.append(nil, n, 0) }

// append writes JSON, the keys in the order written.
func (r *reader) append(b []byte, n *yaml.Node, depth int) []byte {
	n = resolved(n)
	switch {
	case depth > 1000:
		r.wrong(n, "values are nested too deep")
		return append(b, "null"...)
	case n.Kind == yaml.MappingNode:
		b = append(b, '{')
		for i, p := range r.pairs(n) {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.append(append(expr.AppendQuote(b, p.key.Value), ':'), p.value, depth+1)
		}
		return append(b, '}')
	case n.Kind == yaml.SequenceNode:
		b = append(b, '[')
		for i, e := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.append(b, e, depth+1)
		}
		return append(b, ']')
	}
	return append(b, r.scalar(n)...)
}

// scalar is the JSON of a single value. A date is a text; a number keeps its digits.
func (r *reader) scalar(n *yaml.Node) json.RawMessage {
	tag := n.ShortTag()
	if raw := json.RawMessage(n.Value); tag == "!!str" && n.Style == 0 && expr.KindOf(raw) == expr.KindNumber && json.Valid(raw) {
		tag = "!!float" // that is none of the parser's
	}
	switch tag {
	case "!!null":
		return json.RawMessage("null")
	case "!!bool":
		return json.RawMessage(strings.ToLower(n.Value))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.RawMessage(n.Value)
		}
		var v any
		if n.Decode(&v) == nil {
			if b, err := json.Marshal(v); err == nil {
				return b
			}
		}
		r.wrong(n, "%s has no form in JSON", n.Value)
		return json.RawMessage("null")
	}
	return expr.Quote(n.Value)
}

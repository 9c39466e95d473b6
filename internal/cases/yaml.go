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

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// maxText is the largest size of a case file.
const maxText = 4 << 20

// Place is a position in a file.
type Place struct{ Line, Column int }

func placeOf(n *yaml.Node) Place { return Place{n.Line, n.Column} }

// reader reads a file and collects its mistakes.
type reader struct {
	problems definition.Problems
}

// reportError adds a mistake.
func (r *reader) reportError(n *yaml.Node, format string, args ...any) {
	p := definition.Problem{Severity: definition.SeverityError, Msg: fmt.Sprintf(format, args...)}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	r.problems = append(r.problems, p)
}

// readDocuments parses all documents of a text.
func (r *reader) readDocuments(text []byte) (all []*yaml.Node) {
	if len(text) > maxText {
		r.reportError(&yaml.Node{Line: 1, Column: 1}, "the file has %d bytes, more than the limit of %d: divide it", len(text), maxText)
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
			r.reportSyntax(text, err)
			return nil
		}
		if len(doc.Content) == 1 && doc.Content[0].ShortTag() != "!!null" {
			all = append(all, doc.Content[0])
		}
	}
}

// reportSyntax reports an error of the YAML parser, which has a line but no column.
func (r *reader) reportSyntax(text []byte, err error) {
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
	r.reportError(&yaml.Node{Line: line, Column: column}, "invalid YAML: %s", msg)
}

// yamlPair is an entry of a mapping.
type yamlPair struct {
	key   *yaml.Node
	value *yaml.Node
}

// resolveAlias returns the node to which an alias refers, or the node itself.
func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// mappingPairs returns the entries of a mapping, including merged ones. It reports duplicate keys.
func (r *reader) mappingPairs(n *yaml.Node) (all []yamlPair) {
	n = resolveAlias(n)
	at := map[string]int{}
	var merged []yamlPair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolveAlias(n.Content[i]), resolveAlias(n.Content[i+1])
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, r.mergedPairs(value)...)
		case key.Kind != yaml.ScalarNode:
			r.reportError(key, "keys must be texts")
		case at[key.Value] > 0:
			r.reportError(key, "the key %s is there twice, first in line %d", key.Value, at[key.Value])
		default:
			at[key.Value] = key.Line
			all = append(all, yamlPair{key, value})
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

// mergedPairs returns the entries merged by the key <<.
func (r *reader) mergedPairs(n *yaml.Node) (all []yamlPair) {
	switch n.Kind {
	case yaml.MappingNode:
		return r.mappingPairs(n)
	case yaml.SequenceNode:
		for _, e := range n.Content {
			all = append(all, r.mergedPairs(resolveAlias(e))...)
		}
		return all
	}
	r.reportError(n, "only mappings can be merged")
	return nil
}

// readFields reads a mapping with known keys.
func (r *reader) readFields(n *yaml.Node, what string, known map[string]func(*yaml.Node)) {
	if !r.expectKind(n, yaml.MappingNode, what) {
		return
	}
	for _, p := range r.mappingPairs(n) {
		if read := known[p.key.Value]; read != nil {
			read(p.value)
			continue
		}
		r.reportUnknown(p.key, "field of "+what, p.key.Value, slices.Sorted(maps.Keys(known)))
	}
}

// expectKind reports a mistake if a node has another kind than expected.
func (r *reader) expectKind(n *yaml.Node, kind yaml.Kind, what string) bool {
	if resolveAlias(n).Kind == kind {
		return true
	}
	r.reportError(n, "%s has to be %s, but is %s", what, kindNames[kind], kindNames[resolveAlias(n).Kind])
	return false
}

var kindNames = map[yaml.Kind]string{yaml.MappingNode: "a mapping (key: value)",
	yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}

// reportUnknown reports an unknown name and suggests a similar one.
func (r *reader) reportUnknown(n *yaml.Node, what, name string, names []string) {
	r.reportError(n, "unknown %s: %s%s", what, name, nameHint(name, names))
}

// listElements returns the elements of a list. Any other node counts as a list of one element.
func listElements(n *yaml.Node) (all []*yaml.Node) {
	n = resolveAlias(n)
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	for _, e := range n.Content {
		all = append(all, resolveAlias(e))
	}
	return all
}

// readText reads a scalar as text.
func (r *reader) readText(n *yaml.Node, what string) string {
	if !r.expectKind(n, yaml.ScalarNode, what) {
		return ""
	}
	return resolveAlias(n).Value
}

// readTexts reads a list of texts, or a single text.
func (r *reader) readTexts(n *yaml.Node, what string) (all []string) {
	for _, e := range listElements(n) {
		all = append(all, r.readText(e, what))
	}
	return all
}

// readNumber reads a whole number.
func (r *reader) readNumber(n *yaml.Node, what string, least int) int {
	raw := r.readScalar(n, what+": ")
	v, err := strconv.Atoi(string(raw))
	if raw != nil && (err != nil || v < least) {
		r.reportError(n, "%s has to be a whole number, at least %d", what, least)
	}
	return max(v, least)
}

// readBool reads true or false.
func (r *reader) readBool(n *yaml.Node, what string) bool {
	raw := r.readScalar(n, what+": ")
	if raw != nil && expr.KindOf(raw) != expr.KindBool {
		r.reportError(n, "%s has to be true or false", what)
	}
	return string(raw) == "true"
}

// readJSON converts any value to JSON.
func (r *reader) readJSON(n *yaml.Node) json.RawMessage { return r.appendJSON(nil, n, 0) }

// appendJSON appends a value as JSON, with keys in the order of the file.
func (r *reader) appendJSON(b []byte, n *yaml.Node, depth int) []byte {
	n = resolveAlias(n)
	switch {
	case depth > 1000:
		r.reportError(n, "values are nested too deep")
		return append(b, "null"...)
	case n.Kind == yaml.MappingNode:
		b = append(b, '{')
		for i, p := range r.mappingPairs(n) {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.appendJSON(append(expr.AppendQuote(b, p.key.Value), ':'), p.value, depth+1)
		}
		return append(b, '}')
	case n.Kind == yaml.SequenceNode:
		b = append(b, '[')
		for i, e := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.appendJSON(b, e, depth+1)
		}
		return append(b, ']')
	}
	raw := r.readScalar(n, "")
	if raw == nil {
		raw = json.RawMessage("null")
	}
	return append(b, raw...)
}

// readScalar returns the JSON of a scalar, read as in a definition; null for other nodes. It
// reports a value without a clear form in JSON, after the given words, and returns nil for it.
func (r *reader) readScalar(n *yaml.Node, before string) json.RawMessage {
	n = resolveAlias(n)
	if n.Kind != yaml.ScalarNode {
		return json.RawMessage("null")
	}
	raw, err := definition.YAMLScalar(n)
	if err != nil {
		r.reportError(n, "%s%v", before, err)
		return nil
	}
	return raw
}

// checkTags reports the tags without a meaning in a document.
func (r *reader) checkTags(n *yaml.Node) {
	if err := definition.CheckYAMLTag(n); err != nil {
		r.reportError(n, "%v", err)
	}
	for _, part := range n.Content {
		r.checkTags(part)
	}
}

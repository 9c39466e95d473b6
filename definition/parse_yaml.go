package definition

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Limits of the expanded content of a YAML text.
const (
	// size of the text: reading it takes about sixty times as much memory, for JSON ten times
	maxYAMLText   = 4 << 20
	maxYAMLBytes  = 16 << 20 // size as JSON
	maxYAMLDepth  = 1_000
	maxYAMLMerged = 1_000_000 // number of keys
)

// readYAML reads the only document of a YAML text.
func readYAML(text []byte, r *Reporter) textValue {
	if len(text) > maxYAMLText {
		r.addProblem(SeverityError, nil, textPosition{line: 1, column: 1},
			"the text has %d bytes, more than the limit of %d for YAML: send it as JSON", len(text),
			maxYAMLText)
		return nil
	}
	if rejectUTF16(text, r) {
		return nil
	}
	m := &repairedText{textSyntax: &yamlSyntax{left: yamlBudget}, text: text}
	doc, second, err := decodeYAML(m.text)
	if err != nil {
		if len(text) > yamlBudget/8 { // locating the fault would take too long
			yamlSyntaxError(text, err, r)
			return nil
		}
		if !m.repairAll(r) {
			return nil
		}
		doc, second, _ = decodeYAML(m.text)
	}
	if doc == nil {
		r.addProblem(SeverityError, nil, textPosition{line: 1, column: 1}, "the text is empty")
		return nil
	}
	source := newYAMLText(m, text)
	if second != nil {
		r.addSyntaxError(source.positionAt(second.Line, second.Column),
			"the text has more than one document: write each flow into a file of its own")
	}
	c := yamlReader{Reporter: r, text: source, done: map[*yaml.Node]*yamlValue{}}
	root := c.readNode(doc, nil)
	if c.tooMuch {
		return nil
	}
	return root
}

// yamlSyntaxError reports an error of the parser, which contains the line but not the column.
func yamlSyntaxError(text []byte, err error, r *Reporter) {
	msg, at := strings.TrimPrefix(err.Error(), "yaml: "), textPosition{line: 1, column: 1}
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		number, rest, _ := strings.Cut(rest, ": ")
		if line, err := strconv.Atoi(number); err == nil {
			msg, at.line = rest, line
		}
	}
	if lines := bytes.Split(text, []byte("\n")); at.line <= len(lines) {
		line := lines[at.line-1]
		at.column += len(line) - len(bytes.TrimLeft(line, " \t"))
	}
	r.addProblem(SeverityError, nil, at, "invalid YAML: %s", msg)
}

// yamlValue is a value of a YAML text. A value that is used several times through aliases is
// shared.
type yamlValue struct {
	is     expr.Kind
	scalar json.RawMessage
	at     textPosition
	text   *yamlText // set for texts only
	style  yaml.Style
	fields []objectMember
	list   []textValue
	bytes  int // maximum size as JSON
	depth  int
}

func (v *yamlValue) kind() expr.Kind         { return v.is }
func (v *yamlValue) position() textPosition  { return v.at }
func (v *yamlValue) members() []objectMember { return v.fields }
func (v *yamlValue) elements() []textValue   { return v.list }

func (v *yamlValue) rawJSON() json.RawMessage {
	if v.scalar != nil {
		return v.scalar
	}
	return appendJSON(nil, v)
}

// appendJSON encodes a value as JSON with keys in the written order.
func appendJSON(b []byte, v textValue) []byte {
	switch v.kind() {
	case expr.KindArray:
		b = append(b, '[')
		for i, e := range v.elements() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, e)
		}
		return append(b, ']')
	case expr.KindObject:
		b = append(b, '{')
		for i, m := range v.members() {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(expr.AppendQuote(b, m.key), ':')
			b = appendJSON(b, m.value)
		}
		return append(b, '}')
	default:
		return append(b, v.rawJSON()...)
	}
}

func (c *yamlReader) positionOf(n *yaml.Node) textPosition {
	return c.text.positionAt(n.Line, n.Column)
}

// yamlReader converts the nodes of a document to values. The parser limits the nesting, and an
// alias shares the value of its anchor. So reading terminates even if the aliases would expand to
// any size.
type yamlReader struct {
	*Reporter
	text    *yamlText
	done    map[*yaml.Node]*yamlValue // nil while a node is being read
	merged  int
	tooMuch bool
}

func (c *yamlReader) readNode(n *yaml.Node, at *Place) *yamlValue {
	for n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind == yaml.AliasNode {
		return c.resolveAlias(n, at)
	}
	v := &yamlValue{at: c.positionOf(n)}
	if n.Anchor != "" {
		c.done[n] = nil
		defer func() { c.done[n] = v }()
	}
	c.checkTag(n, at)
	switch n.Kind {
	case yaml.MappingNode:
		v.is = expr.KindObject
		c.readMapping(n, v, at)
	case yaml.SequenceNode:
		v.is = expr.KindArray
		for i, e := range n.Content {
			part := c.readNode(e, at.Index(i))
			v.list = append(v.list, part)
			v.addPart(part)
		}
	default:
		c.readScalar(n, v, at)
	}
	c.enforceLimits(v, at)
	return v
}

func (c *yamlReader) resolveAlias(n *yaml.Node, at *Place) *yamlValue {
	if v := c.done[n.Alias]; v != nil {
		return v
	}
	where := c.positionOf(n)
	c.addProblem(SeverityError, at, where, "the alias *%s is a part of what it stands for", n.Value)
	return &yamlValue{at: where, scalar: noValue}
}

// addPart adds the size and depth of a part.
func (v *yamlValue) addPart(part *yamlValue) {
	v.bytes += part.bytes + 1
	v.depth = max(v.depth, part.depth+1)
}

// enforceLimits stops reading a text whose content is too large.
func (c *yamlReader) enforceLimits(v *yamlValue, at *Place) {
	v.bytes += len(v.scalar) + 2
	switch {
	case v.bytes > maxYAMLBytes || c.merged > maxYAMLMerged:
		c.addProblem(SeverityError, nil, v.at, "the text stands for more than %d MiB of JSON", maxYAMLBytes>>20)
	case v.depth > maxYAMLDepth:
		c.addProblem(SeverityError, nil, v.at, "values are nested deeper than %d", maxYAMLDepth)
	default:
		return
	}
	c.tooMuch = true
	*v = yamlValue{at: v.at, scalar: noValue}
}

func (c *yamlReader) readMapping(n *yaml.Node, v *yamlValue, at *Place) {
	first := make(map[string]textPosition, len(n.Content)/2)
	var merges []*yamlValue
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, where := n.Content[i], c.positionOf(n.Content[i])
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, c.readMerge(n.Content[i+1], at.Key(key.Value))...)
			continue
		}
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			c.addProblem(SeverityError, at.Key(key.Value), where, "keys must be strings: put this one in quotes")
			continue
		}
		if before, dup := first[key.Value]; dup {
			c.addProblem(SeverityError, at.Key(key.Value), where, "the key is there twice, first in line %d", before.line)
			continue
		}
		first[key.Value] = where
		v.addField(objectMember{key.Value, where, c.readNode(n.Content[i+1], at.Key(key.Value))})
	}
	for _, from := range merges {
		c.merged += len(from.fields)
		if c.merged > maxYAMLMerged {
			return
		}
		for _, m := range from.fields {
			if _, dup := first[m.key]; !dup {
				first[m.key] = m.at
				v.addField(m)
			}
		}
	}
}

func (v *yamlValue) addField(m objectMember) {
	v.fields = append(v.fields, m)
	v.bytes += len(m.key) + 3
	v.addPart(m.value.(*yamlValue))
}

// readMerge reads the value of the key <<: an object, or an array of objects.
func (c *yamlReader) readMerge(n *yaml.Node, at *Place) []*yamlValue {
	v := c.readNode(n, at)
	switch v.is {
	case expr.KindObject:
		return []*yamlValue{v}
	case expr.KindArray:
		var all []*yamlValue
		for _, e := range v.list {
			if e.kind() == expr.KindObject {
				all = append(all, e.(*yamlValue))
			}
		}
		if len(all) == len(v.list) {
			return all
		}
	}
	c.addProblem(SeverityError, at, c.positionOf(n), "only objects can be merged")
	return nil
}

// readScalar converts a scalar to the JSON of its type. An environment variable keeps the text as
// written, unless that is JSON.
func (c *yamlReader) readScalar(n *yaml.Node, v *yamlValue, at *Place) {
	var err error
	v.scalar, err = YAMLScalar(n)
	v.is = expr.KindOf(v.scalar)
	if v.is == expr.KindString {
		v.text, v.style = c.text, n.Style
	}
	typed := err != nil || v.is == expr.KindNumber || v.is == expr.KindBool
	switch {
	case at.isVariable() && n.Style == 0 && typed:
		if string(v.scalar) != n.Value {
			v.is, v.scalar = expr.KindString, expr.Quote(n.Value)
		}
	case err != nil:
		c.addProblem(SeverityError, at, v.at, "%s", err)
	}
}

// isVariable reports whether a place is an environment variable: exec.env.NAME, or
// tasks.TASK.env.NAME in Ork.
func (p *Place) isVariable() bool {
	if p == nil || p.parent == nil || p.parent.name != "env" || p.parent.parent == nil {
		return false
	}
	holder := p.parent.parent
	return holder.name == "exec" || holder.depth == 2 && holder.parent.name == "tasks"
}

// checkTag reports a tag for a type that JSON does not have.
func (c *yamlReader) checkTag(n *yaml.Node, at *Place) {
	if err := CheckYAMLTag(n); err != nil {
		c.addProblem(SeverityError, at, c.positionOf(n), "%s", err)
	}
}

// noValue is the JSON null.
var noValue = json.RawMessage("null")

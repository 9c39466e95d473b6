package types

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// typeWords maps the names of types to those of JSON Schema.
var typeWords = map[string]string{
	"text": "string", "int": "integer", "number": "number", "bool": "boolean", "list": "array", "object": "object", "any": "",
	"string": "string", "integer": "integer", "boolean": "boolean", "array": "array",
}

// proposedTypes are the names of types that error messages suggest.
var proposedTypes = []string{"text", "int", "number", "bool", "list", "object", "any", "optional"}

// shortForm is a parsed short form.
type shortForm struct {
	schema      jsonObject // schema without default and description
	optional    bool
	fallback    json.RawMessage // the default; nil if none
	description string
}

// readShort reads a short form: [optional] TYPE [= DEFAULT] [(description)], where TYPE is a word,
// `list of TYPE` or `one of a | b`.
func readShort(text string) (s shortForm, err error) {
	text = strings.TrimSpace(text)
	if i := strings.LastIndex(text, " ("); i >= 0 && strings.HasSuffix(text, ")") {
		s.description, text = strings.TrimSpace(text[i+2:len(text)-1]), strings.TrimSpace(text[:i])
	}
	name, value, defaulted := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	if rest, ok := strings.CutPrefix(name, "optional "); ok {
		s.optional, name = true, strings.TrimSpace(rest)
	}
	if s.schema, err = readType(name, 0); err != nil || !defaulted {
		return s, err
	}
	s.fallback, err = s.schema.readDefault(strings.TrimSpace(value))
	return s, err
}

// maxListOf is the maximum nesting of lists in a short form.
const maxListOf = 10

// readType parses the TYPE of a short form.
func readType(name string, depth int) (jsonObject, error) {
	if of, ok := strings.CutPrefix(name, "list of "); ok {
		if depth == maxListOf {
			return nil, fmt.Errorf("has more than %d lists inside each other", maxListOf)
		}
		items, err := readType(strings.TrimSpace(of), depth+1)
		return jsonObject{{"type", quoteText("array")}, {"items", items.toJSON()}}, err
	}
	if choices, ok := strings.CutPrefix(name, "one of "); ok {
		return readChoices(choices)
	}
	if form := timePatterns[name]; form != "" {
		return jsonObject{{"type", quoteText("string")}, {"pattern", quoteText(form)}}, nil
	}
	switch of, known := typeWords[name]; {
	case known && of == "":
		return jsonObject{}, nil
	case known:
		return jsonObject{{"type", quoteText(of)}}, nil
	case strings.Contains(name, "|"):
		return nil, fmt.Errorf("%q is no type: choices are written one of %s", shortenText(name), shortenText(name))
	case name == "" || name == "optional":
		return nil, fmt.Errorf("names no type: write %s", proposals)
	}
	if hint := Nearest(name, proposedTypes); hint != "" {
		return nil, fmt.Errorf("unknown type %q: did you mean %s?", shortenText(name), hint)
	}
	return nil, fmt.Errorf("unknown type %q: write %s", shortenText(name), proposals)
}

const proposals = "text, int, number, bool, object, any, list of text, one of a | b, or optional before it"

// readChoices parses `a | b | c`. The choices are numbers if all of them are numbers, else texts.
func readChoices(list string) (jsonObject, error) {
	var texts []string
	for choice := range strings.SplitSeq(list, "|") {
		choice = strings.TrimSpace(choice)
		if choice == "" {
			return nil, fmt.Errorf("one of %q has an empty choice: write one of a | b", shortenText(list))
		}
		texts = append(texts, choice)
	}
	numbers := !slices.ContainsFunc(texts, func(text string) bool { return !isNumber(text) })
	values := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		values[i] = literalText(text)
		if numbers {
			values[i] = json.RawMessage(text)
		}
	}
	return jsonObject{{"enum", jsonArray(values)}}, nil
}

func isNumber(text string) bool {
	raw := json.RawMessage(text)
	return expr.KindOf(raw) == expr.KindNumber && expr.Valid(raw)
}

// readDefault parses a default according to its type. The default of a text needs no quotes.
func (o jsonObject) readDefault(text string) (json.RawMessage, error) {
	raw := json.RawMessage(text)
	kind, _ := expr.String(o.valueOf("type"))
	switch choices, _ := expr.Elements(o.valueOf("enum")); {
	case kind == "string", len(choices) > 0 && expr.KindOf(choices[0]) == expr.KindString:
		return literalText(text), nil
	case expr.Valid(raw):
		return expr.Compact(raw), nil
	case kind == "" && len(choices) == 0:
		return expr.Quote(text), nil
	}
	return nil, fmt.Errorf("the default %q is no JSON", shortenText(text))
}

// literalText returns a text as JSON. The text may have quotes around it.
func literalText(text string) json.RawMessage {
	if raw := json.RawMessage(text); expr.KindOf(raw) == expr.KindString && expr.Valid(raw) {
		return expr.Compact(raw)
	}
	return expr.Quote(text)
}

// jsonObject is a JSON object under construction.
type jsonObject []objectMember

// objectMember is a key of a jsonObject, with its value.
type objectMember struct {
	key   string
	value json.RawMessage
}

func quoteText(text string) json.RawMessage { return expr.Quote(text) }

func (o jsonObject) valueOf(key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// withMember returns the object with the value of a key set or replaced.
func (o jsonObject) withMember(key string, v json.RawMessage) jsonObject {
	for i := range o {
		if o[i].key == key {
			o[i].value = v
			return o
		}
	}
	return append(o, objectMember{key, v})
}

func (o jsonObject) toJSON() json.RawMessage {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(expr.AppendQuote(b, m.key), ':')
		b = append(b, m.value...)
	}
	return append(b, '}')
}

func jsonArray(values []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

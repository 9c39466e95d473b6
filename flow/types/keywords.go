package types

import (
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// keyword takes up one member of a schema.
func (c *compiler) keyword(n *node, m expr.Member, path []string) {
	read, known := keywords[m.Key]
	at := below(path, m.Key)
	switch {
	case known && read != nil:
		read(c, n, m.Value, at)
	case known, strings.HasPrefix(m.Key, "x-"):
	case refused[m.Key] != "":
		c.report(at, "%s", refused[m.Key])
	default:
		hint := ""
		if near := Nearest(m.Key, keywordNames); near != "" {
			hint = ": did you mean " + near + "?"
		}
		c.add(Problem{Path: at, Msg: "unknown keyword, ignored" + hint, Warning: true})
	}
}

// refused are keywords that would change what a schema means, and are not understood.
var refused = map[string]string{
	"$dynamicRef": "is not understood: write $ref", "$dynamicAnchor": "is not understood: write $anchor",
	"$recursiveRef": "belongs to an older draft: write $ref", "$recursiveAnchor": "belongs to an older draft: write $anchor",
	"$vocabulary":     "is not understood",
	"additionalItems": "belongs to an older draft: write prefixItems and items", "dependencies": "belongs to an older draft: write dependentRequired or dependentSchemas",
}

// reader takes up the value of a keyword.
type reader func(c *compiler, n *node, v json.RawMessage, at []string)

// keywords of the standard; those that say nothing about values have no reader.
var keywords map[string]reader

var keywordNames []string

func init() {
	keywords = map[string]reader{
		"$schema": (*compiler).dialect, "$id": (*compiler).identity, "$ref": (*compiler).ref, "$anchor": (*compiler).anchor,
		"$defs": defined, "definitions": defined, "$comment": nil, "title": nil, "examples": nil, "deprecated": nil,
		"readOnly": nil, "writeOnly": nil, "format": nil, "contentEncoding": nil, "contentMediaType": nil, "contentSchema": nil,

		"description": func(c *compiler, n *node, v json.RawMessage, at []string) { n.description = c.text(v, at) },
		"default":     func(_ *compiler, n *node, v json.RawMessage, _ []string) { n.fallback = v },
		"type":        (*compiler).types, "enum": (*compiler).enum,
		"const": func(_ *compiler, n *node, v json.RawMessage, _ []string) { n.only = v },

		"allOf": several(func(n *node) *[]*node { return &n.all }), "anyOf": several(func(n *node) *[]*node { return &n.any }),
		"oneOf": several(func(n *node) *[]*node { return &n.one }), "prefixItems": several(func(n *node) *[]*node { return &n.prefix }),
		"not": one(func(n *node) **node { return &n.not }), "if": one(func(n *node) **node { return &n.cond }),
		"then": one(func(n *node) **node { return &n.then }), "else": one(func(n *node) **node { return &n.otherwise }),
		"items": one(func(n *node) **node { return &n.items }), "contains": one(func(n *node) **node { return &n.contains }),
		"unevaluatedItems":     one(func(n *node) **node { return &n.unseenItems }),
		"additionalProperties": one(func(n *node) **node { return &n.additional }), "propertyNames": one(func(n *node) **node { return &n.propertyNames }),
		"unevaluatedProperties": one(func(n *node) **node { return &n.unseen }),

		"minimum": edge(func(n *node) **bound { return &n.min }), "maximum": edge(func(n *node) **bound { return &n.max }),
		"exclusiveMinimum": edge(func(n *node) **bound { return &n.above }), "exclusiveMaximum": edge(func(n *node) **bound { return &n.under }),
		"multipleOf": (*compiler).multipleOf,
		"minLength":  count(func(n *node) *limit { return &n.minLength }), "maxLength": count(func(n *node) *limit { return &n.maxLength }),
		"minItems": count(func(n *node) *limit { return &n.minItems }), "maxItems": count(func(n *node) *limit { return &n.maxItems }),
		"minContains": count(func(n *node) *limit { return &n.minHeld }), "maxContains": count(func(n *node) *limit { return &n.maxHeld }),
		"minProperties": count(func(n *node) *limit { return &n.minFields }), "maxProperties": count(func(n *node) *limit { return &n.maxFields }),
		"uniqueItems": func(c *compiler, n *node, v json.RawMessage, at []string) {
			n.unique = c.want(v, expr.KindBool, at) && string(v) == "true"
		},
		"pattern": func(c *compiler, n *node, v json.RawMessage, at []string) { n.pattern = c.regex(c.text(v, at), at) },

		"properties": (*compiler).properties, "patternProperties": (*compiler).patternProperties,
		"required":          func(c *compiler, n *node, v json.RawMessage, at []string) { n.required = c.texts(v, at) },
		"dependentRequired": (*compiler).dependentRequired, "dependentSchemas": (*compiler).dependentSchemas,
	}
	for name := range keywords {
		keywordNames = append(keywordNames, name)
	}
}

func one(of func(*node) **node) reader {
	return func(c *compiler, n *node, v json.RawMessage, at []string) { *of(n) = c.schema(v, at) }
}

func several(of func(*node) *[]*node) reader {
	return func(c *compiler, n *node, v json.RawMessage, at []string) {
		if !c.want(v, expr.KindArray, at) {
			return
		}
		elements, _ := expr.Elements(v)
		if len(elements) == 0 {
			c.report(at, "has no schema in it")
		}
		for i, e := range elements {
			*of(n) = append(*of(n), c.schema(e, below(at, index(i))))
		}
	}
}

func edge(of func(*node) **bound) reader {
	return func(c *compiler, n *node, v json.RawMessage, at []string) { *of(n) = c.number(v, at) }
}

func count(of func(*node) *limit) reader {
	return func(c *compiler, n *node, v json.RawMessage, at []string) {
		f, ok := expr.Number(v)
		if !ok || f < 0 || f != math.Trunc(f) || f > math.MaxInt32 {
			c.report(at, "must be a whole number from 0 on, is %s", shorten(string(v)))
			return
		}
		most := int(f)
		*of(n) = &most
	}
}

func (c *compiler) want(v json.RawMessage, kind expr.Kind, at []string) bool {
	if expr.KindOf(v) == kind {
		return true
	}
	c.report(at, "must be %s, is %s", kind, expr.KindOf(v))
	return false
}

func (c *compiler) text(v json.RawMessage, at []string) string {
	if !c.want(v, expr.KindString, at) {
		return ""
	}
	text, _ := expr.String(v)
	return text
}

func (c *compiler) texts(v json.RawMessage, at []string) []string {
	if !c.want(v, expr.KindArray, at) {
		return nil
	}
	elements, _ := expr.Elements(v)
	list := make([]string, len(elements))
	for i, e := range elements {
		list[i] = c.text(e, below(at, index(i)))
	}
	return list
}

// dialect accepts the draft that is understood.
func (c *compiler) dialect(_ *node, v json.RawMessage, at []string) {
	text := c.text(v, at)
	const draft = "json-schema.org/draft/2020-12/schema"
	if len(at) > 1 || strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://"), "#") != draft {
		c.report(at, "is %q: only https://%s is understood, for the whole schema", shorten(text), draft)
	}
}

func (c *compiler) identity(_ *node, _ json.RawMessage, at []string) {
	if len(at) > 1 {
		c.report(at, "is not understood inside a schema: leave it out")
	}
}

func (c *compiler) ref(n *node, v json.RawMessage, at []string) {
	c.refs = append(c.refs, reference{n, c.text(v, at), at})
}

func (c *compiler) anchor(n *node, v json.RawMessage, at []string) {
	name := c.text(v, at)
	if c.anchors[name] != nil {
		c.report(at, "the name %q is there twice", shorten(name))
	}
	c.anchors[name] = n
}

// eachOf goes through an object of schemas.
func (c *compiler) eachOf(v json.RawMessage, at []string, do func(name string, n *node, at []string)) {
	if !c.want(v, expr.KindObject, at) {
		return
	}
	members, _ := expr.Members(v)
	for _, m := range members {
		at := below(at, m.Key)
		do(m.Key, c.schema(m.Value, at), at)
	}
}

func defined(c *compiler, _ *node, v json.RawMessage, at []string) {
	c.eachOf(v, at, func(string, *node, []string) {})
}

func (c *compiler) properties(n *node, v json.RawMessage, at []string) {
	n.properties = map[string]*node{}
	c.eachOf(v, at, func(name string, of *node, _ []string) {
		if n.properties[name] == nil {
			n.names = append(n.names, name)
		}
		n.properties[name] = of
	})
}

func (c *compiler) patternProperties(n *node, v json.RawMessage, at []string) {
	c.eachOf(v, at, func(text string, of *node, at []string) {
		if p := c.regex(text, at); p != nil {
			n.patterns = append(n.patterns, patternNode{p, of})
		}
	})
}

func (c *compiler) dependentSchemas(n *node, v json.RawMessage, at []string) {
	n.implies = map[string]*node{}
	c.eachOf(v, at, func(name string, of *node, _ []string) { n.implies[name] = of })
}

func (c *compiler) dependentRequired(n *node, v json.RawMessage, at []string) {
	if !c.want(v, expr.KindObject, at) {
		return
	}
	n.needs = map[string][]string{}
	members, _ := expr.Members(v)
	for _, m := range members {
		n.needs[m.Key] = c.texts(m.Value, below(at, m.Key))
	}
}

// named are the kinds by their names, ours and those of the standard.
var named = map[string]kinds{
	"null": isNull, "boolean": isBool, "bool": isBool, "integer": isInt, "int": isInt, "number": isNumeric,
	"string": isText, "text": isText, "array": isList, "list": isList, "object": isObject,
}

func (c *compiler) types(n *node, v json.RawMessage, at []string) {
	list := []json.RawMessage{v}
	if elements, ok := expr.Elements(v); ok {
		list = elements
	}
	if len(list) == 0 {
		c.report(at, "names no type")
	}
	for _, e := range list {
		name := c.text(e, at)
		if words[name] != name && name != "null" { // a schema is to mean the same to everybody
			c.report(at, "unknown type %q: write string, integer, number, boolean, array, object or null", shorten(name))
		}
		n.types |= named[name]
	}
}

func (c *compiler) enum(n *node, v json.RawMessage, at []string) {
	if !c.want(v, expr.KindArray, at) {
		return
	}
	if n.choices, _ = expr.Elements(v); len(n.choices) == 0 {
		c.report(at, "has no choice in it")
	}
}

func (c *compiler) regex(text string, at []string) *pattern {
	states, err := expr.RegexStates(text)
	if err != nil {
		c.report(at, "%s", err)
		return nil
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		c.report(at, "%s", err)
		return nil
	}
	return &pattern{compiled, states}
}

// bound is a number that others are compared with.
type bound struct {
	*big.Rat
	text string
}

// compare orders a value and the bound: -1 if the value is smaller.
func (b *bound) compare(v json.RawMessage) int {
	return expr.CompareNumbers(v, json.RawMessage(b.text))
}

// maxDigits bounds the numbers that are compared exactly, in digits and in powers of ten.
const maxDigits = 400

// exact is a number as a fraction; nil if it is none, or out of all bounds.
func exact(v json.RawMessage) *big.Rat {
	text := strings.TrimSpace(string(v))
	if len(text) > maxDigits || expr.KindOf(v) != expr.KindNumber {
		return nil
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if power, err := strconv.Atoi(text[i+1:]); err != nil || power > maxDigits || power < -maxDigits {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}

func (c *compiler) number(v json.RawMessage, at []string) *bound {
	r := exact(v)
	if r == nil {
		c.report(at, "must be a number of at most %d digits, is %s", maxDigits, shorten(string(v)))
		return nil
	}
	return &bound{r, strings.TrimSpace(string(v))}
}

func (c *compiler) multipleOf(n *node, v json.RawMessage, at []string) {
	if n.multiple = c.number(v, at); n.multiple != nil && n.multiple.Sign() <= 0 {
		c.report(at, "must be greater than 0")
	}
}

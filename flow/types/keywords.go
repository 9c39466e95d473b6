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

// readKeyword reads one member of a schema.
func (c *compiler) readKeyword(n *schemaNode, m expr.Member, path []string) {
	read, known := keywords[m.Key]
	at := childPath(path, m.Key)
	switch {
	case known && read != nil:
		read(c, n, m.Value, at)
	case known, strings.HasPrefix(m.Key, "x-"):
	case refusedKeywords[m.Key] != "":
		c.reportProblem(at, "%s", refusedKeywords[m.Key])
	default:
		hint := ""
		if near := Nearest(m.Key, keywordNames); near != "" {
			hint = ": did you mean " + near + "?"
		}
		c.addProblem(Problem{Path: at, Msg: "unknown keyword, ignored" + hint, Warning: true})
	}
}

// refusedKeywords maps unsupported keywords to messages. Each would change the meaning of a schema.
var refusedKeywords = map[string]string{
	"$dynamicRef": "is not understood: write $ref", "$dynamicAnchor": "is not understood: write $anchor",
	"$recursiveRef": "belongs to an older draft: write $ref", "$recursiveAnchor": "belongs to an older draft: write $anchor",
	"$vocabulary":     "is not understood",
	"additionalItems": "belongs to an older draft: write prefixItems and items",
	"dependencies":    "belongs to an older draft: write dependentRequired or dependentSchemas",
}

// keywordReader reads the value of a keyword.
type keywordReader func(c *compiler, n *schemaNode, v json.RawMessage, at []string)

// keywords maps the keywords of the standard to their readers. Annotations have no reader.
var keywords map[string]keywordReader

var keywordNames []string

func init() {
	keywords = map[string]keywordReader{
		"$schema": (*compiler).checkDialect, "$id": (*compiler).checkIdentity, "$ref": (*compiler).addRef, "$anchor": (*compiler).addAnchor,
		"$defs": readDefs, "definitions": readDefs, "$comment": nil, "title": nil, "examples": nil, "deprecated": nil,
		"readOnly": nil, "writeOnly": nil, "format": nil, "contentEncoding": nil, "contentMediaType": nil, "contentSchema": nil,

		"description": func(c *compiler, n *schemaNode, v json.RawMessage, at []string) { n.description = c.readText(v, at) },
		"default":     func(_ *compiler, n *schemaNode, v json.RawMessage, _ []string) { n.defaultValue = v },
		"type":        (*compiler).readTypes, "enum": (*compiler).readEnum,
		"const": func(_ *compiler, n *schemaNode, v json.RawMessage, _ []string) { n.only = v },

		"allOf":            nodesKeyword(func(n *schemaNode) *[]*schemaNode { return &n.all }),
		"anyOf":            nodesKeyword(func(n *schemaNode) *[]*schemaNode { return &n.any }),
		"oneOf":            nodesKeyword(func(n *schemaNode) *[]*schemaNode { return &n.one }),
		"prefixItems":      nodesKeyword(func(n *schemaNode) *[]*schemaNode { return &n.prefix }),
		"not":              nodeKeyword(func(n *schemaNode) **schemaNode { return &n.not }),
		"if":               nodeKeyword(func(n *schemaNode) **schemaNode { return &n.cond }),
		"then":             nodeKeyword(func(n *schemaNode) **schemaNode { return &n.then }),
		"else":             nodeKeyword(func(n *schemaNode) **schemaNode { return &n.otherwise }),
		"items":            nodeKeyword(func(n *schemaNode) **schemaNode { return &n.items }),
		"contains":         nodeKeyword(func(n *schemaNode) **schemaNode { return &n.contains }),
		"unevaluatedItems": nodeKeyword(func(n *schemaNode) **schemaNode { return &n.unevaluatedItems }),
		"additionalProperties": nodeKeyword(
			func(n *schemaNode) **schemaNode { return &n.additional }),
		"propertyNames":         nodeKeyword(func(n *schemaNode) **schemaNode { return &n.propertyNames }),
		"unevaluatedProperties": nodeKeyword(func(n *schemaNode) **schemaNode { return &n.unevaluatedFields }),

		"minimum":          boundKeyword(func(n *schemaNode) **numberBound { return &n.min }),
		"maximum":          boundKeyword(func(n *schemaNode) **numberBound { return &n.max }),
		"exclusiveMinimum": boundKeyword(func(n *schemaNode) **numberBound { return &n.above }),
		"exclusiveMaximum": boundKeyword(func(n *schemaNode) **numberBound { return &n.under }),
		"multipleOf":       (*compiler).multipleOf,
		"minLength":        limitKeyword(func(n *schemaNode) *countLimit { return &n.minLength }),
		"maxLength":        limitKeyword(func(n *schemaNode) *countLimit { return &n.maxLength }),
		"minItems":         limitKeyword(func(n *schemaNode) *countLimit { return &n.minItems }),
		"maxItems":         limitKeyword(func(n *schemaNode) *countLimit { return &n.maxItems }),
		"minContains":      limitKeyword(func(n *schemaNode) *countLimit { return &n.minContains }),
		"maxContains":      limitKeyword(func(n *schemaNode) *countLimit { return &n.maxContains }),
		"minProperties":    limitKeyword(func(n *schemaNode) *countLimit { return &n.minFields }),
		"maxProperties":    limitKeyword(func(n *schemaNode) *countLimit { return &n.maxFields }),
		"uniqueItems": func(c *compiler, n *schemaNode, v json.RawMessage, at []string) {
			n.unique = c.expectKind(v, expr.KindBool, at) && string(v) == "true"
		},
		"pattern": func(c *compiler, n *schemaNode, v json.RawMessage, at []string) {
			n.pattern = c.compileRegex(c.readText(v, at), at)
		},

		"properties": (*compiler).readProperties, "patternProperties": (*compiler).patternProperties,
		"required":          func(c *compiler, n *schemaNode, v json.RawMessage, at []string) { n.required = c.readTexts(v, at) },
		"dependentRequired": (*compiler).dependentRequired, "dependentSchemas": (*compiler).dependentSchemas,
	}
	for name := range keywords {
		keywordNames = append(keywordNames, name)
	}
}

func nodeKeyword(of func(*schemaNode) **schemaNode) keywordReader {
	return func(c *compiler, n *schemaNode, v json.RawMessage, at []string) { *of(n) = c.compileNode(v, at) }
}

func nodesKeyword(of func(*schemaNode) *[]*schemaNode) keywordReader {
	return func(c *compiler, n *schemaNode, v json.RawMessage, at []string) {
		if !c.expectKind(v, expr.KindArray, at) {
			return
		}
		elements, _ := expr.Elements(v)
		if len(elements) == 0 {
			c.reportProblem(at, "has no schema in it")
		}
		for i, e := range elements {
			*of(n) = append(*of(n), c.compileNode(e, childPath(at, indexText(i))))
		}
	}
}

func boundKeyword(of func(*schemaNode) **numberBound) keywordReader {
	return func(c *compiler, n *schemaNode, v json.RawMessage, at []string) { *of(n) = c.readNumber(v, at) }
}

func limitKeyword(of func(*schemaNode) *countLimit) keywordReader {
	return func(c *compiler, n *schemaNode, v json.RawMessage, at []string) {
		f, ok := expr.Number(v)
		if !ok || f < 0 || f != math.Trunc(f) || f > math.MaxInt32 {
			c.reportProblem(at, "must be a whole number from 0 on, is %s", shortenText(string(v)))
			return
		}
		most := int(f)
		*of(n) = &most
	}
}

func (c *compiler) expectKind(v json.RawMessage, kind expr.Kind, at []string) bool {
	if expr.KindOf(v) == kind {
		return true
	}
	c.reportProblem(at, "must be %s, is %s", kind, expr.KindOf(v))
	return false
}

func (c *compiler) readText(v json.RawMessage, at []string) string {
	if !c.expectKind(v, expr.KindString, at) {
		return ""
	}
	text, _ := expr.String(v)
	return text
}

func (c *compiler) readTexts(v json.RawMessage, at []string) []string {
	if !c.expectKind(v, expr.KindArray, at) {
		return nil
	}
	elements, _ := expr.Elements(v)
	list := make([]string, len(elements))
	for i, e := range elements {
		list[i] = c.readText(e, childPath(at, indexText(i)))
	}
	return list
}

// checkDialect rejects schemas of any draft but the supported one.
func (c *compiler) checkDialect(_ *schemaNode, v json.RawMessage, at []string) {
	text := c.readText(v, at)
	const draft = "json-schema.org/draft/2020-12/schema"
	if len(at) > 1 || strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://"), "#") != draft {
		c.reportProblem(at, "is %q: only https://%s is understood, for the whole schema", shortenText(text), draft)
	}
}

func (c *compiler) checkIdentity(_ *schemaNode, _ json.RawMessage, at []string) {
	if len(at) > 1 {
		c.reportProblem(at, "is not understood inside a schema: leave it out")
	}
}

func (c *compiler) addRef(n *schemaNode, v json.RawMessage, at []string) {
	c.refs = append(c.refs, schemaRef{n, c.readText(v, at), at})
}

func (c *compiler) addAnchor(n *schemaNode, v json.RawMessage, at []string) {
	name := c.readText(v, at)
	if c.anchors[name] != nil {
		c.reportProblem(at, "the name %q is there twice", shortenText(name))
	}
	c.anchors[name] = n
}

// eachOf calls do for each schema in an object.
func (c *compiler) eachOf(v json.RawMessage, at []string, do func(name string, n *schemaNode, at []string)) {
	if !c.expectKind(v, expr.KindObject, at) {
		return
	}
	members, _ := expr.Members(v)
	for _, m := range members {
		at := childPath(at, m.Key)
		do(m.Key, c.compileNode(m.Value, at), at)
	}
}

func readDefs(c *compiler, _ *schemaNode, v json.RawMessage, at []string) {
	c.eachOf(v, at, func(string, *schemaNode, []string) {})
}

func (c *compiler) readProperties(n *schemaNode, v json.RawMessage, at []string) {
	n.properties = map[string]*schemaNode{}
	c.eachOf(v, at, func(name string, of *schemaNode, _ []string) {
		if n.properties[name] == nil {
			n.names = append(n.names, name)
		}
		n.properties[name] = of
	})
}

func (c *compiler) patternProperties(n *schemaNode, v json.RawMessage, at []string) {
	c.eachOf(v, at, func(text string, of *schemaNode, at []string) {
		if p := c.compileRegex(text, at); p != nil {
			n.patterns = append(n.patterns, patternNode{p, of})
		}
	})
}

func (c *compiler) dependentSchemas(n *schemaNode, v json.RawMessage, at []string) {
	n.dependentSchemas = map[string]*schemaNode{}
	c.eachOf(v, at, func(name string, of *schemaNode, _ []string) { n.dependentSchemas[name] = of })
}

func (c *compiler) dependentRequired(n *schemaNode, v json.RawMessage, at []string) {
	if !c.expectKind(v, expr.KindObject, at) {
		return
	}
	n.dependentRequired = map[string][]string{}
	members, _ := expr.Members(v)
	for _, m := range members {
		n.dependentRequired[m.Key] = c.readTexts(m.Value, childPath(at, m.Key))
	}
}

// kindsByName maps names of types to types: the names of JSON Schema, and shorter names.
var kindsByName = map[string]typeSet{
	"null": isNull, "boolean": isBool, "bool": isBool, "integer": isInt, "int": isInt, "number": isNumeric,
	"string": isText, "text": isText, "array": isList, "list": isList, "object": isObject,
}

func (c *compiler) readTypes(n *schemaNode, v json.RawMessage, at []string) {
	list := []json.RawMessage{v}
	if elements, ok := expr.Elements(v); ok {
		list = elements
	}
	if len(list) == 0 {
		c.reportProblem(at, "names no type")
	}
	for _, e := range list {
		name := c.readText(e, at)
		if typeWords[name] != name && name != "null" { // a schema must mean the same for every tool
			c.reportProblem(at, "unknown type %q: write string, integer, number, boolean, array, object or null", shortenText(name))
		}
		n.types |= kindsByName[name]
	}
}

func (c *compiler) readEnum(n *schemaNode, v json.RawMessage, at []string) {
	if !c.expectKind(v, expr.KindArray, at) {
		return
	}
	if n.choices, _ = expr.Elements(v); len(n.choices) == 0 {
		c.reportProblem(at, "has no choice in it")
	}
}

func (c *compiler) compileRegex(text string, at []string) *pattern {
	states, err := expr.RegexStates(text)
	if err != nil {
		c.reportProblem(at, "%s", err)
		return nil
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		c.reportProblem(at, "%s", err)
		return nil
	}
	return &pattern{compiled, states}
}

// numberBound is a minimum, a maximum or a divisor of numbers.
type numberBound struct {
	*big.Rat
	text string
}

// compareTo compares a value with the bound. It returns -1 if the value is smaller.
func (b *numberBound) compareTo(v json.RawMessage) int {
	return expr.CompareNumbers(v, json.RawMessage(b.text))
}

// maxDigits is the maximum size of numbers that are compared exactly, in digits and in powers of
// ten.
const maxDigits = 400

// exactNumber returns a number as a fraction, or nil if v is not a number or too large.
func exactNumber(v json.RawMessage) *big.Rat {
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

func (c *compiler) readNumber(v json.RawMessage, at []string) *numberBound {
	r := exactNumber(v)
	if r == nil {
		c.reportProblem(at, "must be a number of at most %d digits, is %s", maxDigits, shortenText(string(v)))
		return nil
	}
	return &numberBound{r, strings.TrimSpace(string(v))}
}

func (c *compiler) multipleOf(n *schemaNode, v json.RawMessage, at []string) {
	if n.multiple = c.readNumber(v, at); n.multiple != nil && n.multiple.Sign() <= 0 {
		c.reportProblem(at, "must be greater than 0")
	}
}

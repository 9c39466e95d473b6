package types

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Limits of one schema.
const (
	maxSchema = 64 << 10 // bytes
	maxNodes  = 2_000    // nested schemas, in total
	maxNested = 100

	maxDefaultSteps = 100_000 // maximum work to fill in a default
)

// schemaNode is a compiled schema. Fields for absent keywords are zero.
type schemaNode struct {
	never        bool // the schema is false, so no value fits
	types        typeSet
	choices      []json.RawMessage // enum; nil for any value
	only         json.RawMessage   // const; nil for any value
	defaultValue json.RawMessage
	hasDefaults  bool // a part of the schema has a default

	ref, not, cond, then, otherwise *schemaNode
	all, any, one                   []*schemaNode

	min, max, above, under, multiple *numberBound
	minLength, maxLength             countLimit
	pattern                          *pattern

	prefix                   []*schemaNode
	items, contains          *schemaNode
	minItems, maxItems       countLimit
	minContains, maxContains countLimit
	unique                   bool
	unevaluatedItems         *schemaNode
	properties               map[string]*schemaNode
	names                    []string // names of properties, in written order
	required                 []string
	patterns                 []patternNode
	additional               *schemaNode
	propertyNames            *schemaNode
	minFields, maxFields     countLimit
	dependentRequired        map[string][]string
	dependentSchemas         map[string]*schemaNode
	unevaluatedFields        *schemaNode // keyword unevaluatedProperties

	description string
}

// typeSet is a set of types. 0 means all types.
type typeSet uint8

const (
	isNull typeSet = 1 << iota
	isBool
	isInt
	isFloat
	isText
	isList
	isObject
)

const isNumeric = isInt | isFloat

// countLimit is a limit on a count. It is a pointer because 0 is a valid limit.
type countLimit *int

// pattern is a regular expression.
type pattern struct {
	*regexp.Regexp
	states int
}

type patternNode struct {
	*pattern
	*schemaNode
}

// compiler compiles a schema to nodes.
type compiler struct {
	root     json.RawMessage
	nodes    map[string]*schemaNode // compiled schemas by JSON pointer
	anchors  map[string]*schemaNode
	refs     []schemaRef
	left     int // number of further nodes allowed
	problems []Problem
}

// schemaRef is a reference that is resolved after the whole schema was read.
type schemaRef struct {
	from *schemaNode
	text string
	path []string
}

// compileSchema compiles a schema. It returns nil if the schema is too large.
func compileSchema(text json.RawMessage) (*schemaNode, []Problem) {
	c := &compiler{root: text, nodes: map[string]*schemaNode{}, anchors: map[string]*schemaNode{}, left: maxNodes}
	if len(text) > maxSchema {
		c.reportProblem(nil, "has %d bytes as a JSON Schema, more than the limit of %d", len(text), maxSchema)
		return nil, c.problems
	}
	root := c.compileNode(text, nil)
	for i := 0; i < len(c.refs); i++ { // resolving may find further references
		c.resolveRef(c.refs[i])
	}
	if !slices.ContainsFunc(c.problems, func(p Problem) bool { return !p.Warning }) {
		c.finishNodes()
	}
	return root, c.problems
}

func (c *compiler) reportProblem(path []string, format string, args ...any) {
	c.addProblem(Problem{Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (c *compiler) addProblem(p Problem) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, p)
	}
}

// compileNode compiles the schema at a place. Each place is compiled once.
func (c *compiler) compileNode(raw json.RawMessage, path []string) *schemaNode {
	pointer := pointerOf(path)
	if n := c.nodes[pointer]; n != nil {
		return n
	}
	n := &schemaNode{}
	c.nodes[pointer] = n
	switch c.left--; {
	case c.left < 0:
		if c.left == -1 {
			c.reportProblem(path, "the schema has more than %d parts", maxNodes)
		}
		return n
	case len(path) > maxNested:
		c.reportProblem(path, "schemas nest no deeper than %d", maxNested)
		return n
	}
	switch kind := expr.KindOf(raw); kind {
	case expr.KindBool:
		n.never = string(raw) == "false"
	case expr.KindObject:
		members, _ := expr.Members(raw)
		for _, m := range members {
			c.readKeyword(n, m, path)
		}
	default:
		c.reportProblem(path, "must be a schema, which is an object, is %s", kind)
	}
	return n
}

func pointerOf(path []string) string {
	var b strings.Builder
	for _, key := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(strings.Trim(key, "[]")))
	}
	return b.String()
}

// resolveRef finds the target of a reference.
func (c *compiler) resolveRef(r schemaRef) {
	name, ok := strings.CutPrefix(r.text, "#")
	pointer, err := url.PathUnescape(name)
	switch {
	case !ok || err != nil:
		c.reportProblem(r.path, "%q is in another document, and nothing is loaded: put it under "+
			"$defs and write #/$defs/NAME", shortenText(r.text))
	case pointer != "" && pointer[0] != '/':
		if r.from.ref = c.anchors[pointer]; r.from.ref == nil {
			c.reportProblem(r.path, "there is no $anchor %q", shortenText(pointer))
		}
	default:
		c.resolvePointer(r, pointer)
	}
}

func (c *compiler) resolvePointer(r schemaRef, pointer string) {
	v, path, ok := c.root, []string(nil), true
	for _, key := range strings.Split(pointer, "/")[1:] {
		if !ok {
			break
		}
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		if i, err := strconv.Atoi(key); err == nil && expr.KindOf(v) == expr.KindArray {
			v, ok = expr.Index(v, i)
			path = append(path, indexText(i))
			continue
		}
		v, ok = expr.Field(v, key)
		path = append(path, key)
	}
	if !ok {
		c.reportProblem(r.path, "there is nothing at %q", shortenText(r.text))
		return
	}
	r.from.ref = c.compileNode(v, path)
}

// finishNodes checks the whole schema for circular references and invalid defaults.
func (c *compiler) finishNodes() {
	pointers := make([]string, 0, len(c.nodes))
	for pointer := range c.nodes {
		pointers = append(pointers, pointer)
	}
	slices.Sort(pointers)
	seen := map[*schemaNode]int{}
	for _, pointer := range pointers {
		if c.nodes[pointer].isCircular(seen) {
			c.reportProblem(pathOf(pointer), "refers to itself without looking at anything in between")
			return
		}
	}
	for changed := true; changed; {
		changed = false
		for _, n := range c.nodes {
			if !n.hasDefaults && slices.ContainsFunc(n.defaultParts(),
				func(part *schemaNode) bool { return part.defaultValue != nil || part.hasDefaults }) {
				n.hasDefaults, changed = true, true
			}
		}
	}
	for _, pointer := range pointers {
		if n := c.nodes[pointer]; n.defaultValue != nil {
			c.checkDefault(n, pathOf(pointer))
		}
	}
}

func pathOf(pointer string) []string {
	var path []string
	for _, key := range strings.Split(pointer, "/")[1:] {
		path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
	}
	return path
}

// checkDefault rejects a default that does not fit. It also rejects a default that would grow
// without end when its own missing values are filled in.
func (c *compiler) checkDefault(n *schemaNode, path []string) {
	path = childPath(path, "default")
	f := filler{left: maxSchema, steps: Budget - maxDefaultSteps}
	v := f.fillValue(n, n.defaultValue, 0)
	if f.left < 0 {
		c.reportProblem(path, "fills itself in without end")
		return
	}
	k := newCheck()
	k.checkValue(n, v, nil, nil)
	for _, p := range k.problems {
		c.reportProblem(append(path[:len(path):len(path)], p.Path...), "does not fit what it is the default of: it %s", p.Msg)
	}
	n.defaultValue = v
}

// appliedParts returns the other schemas that apply to the same value as n.
func (n *schemaNode) appliedParts() []*schemaNode {
	list := slices.Concat(n.all, n.any, n.one)
	for _, other := range []*schemaNode{n.ref, n.not, n.cond, n.then, n.otherwise} {
		if other != nil {
			list = append(list, other)
		}
	}
	for _, other := range n.dependentSchemas {
		list = append(list, other)
	}
	return list
}

// isCircular reports whether a schema applies itself to the same value again. seen is 1 for a
// schema in progress, and 2 for a finished one.
func (n *schemaNode) isCircular(seen map[*schemaNode]int) bool {
	if seen[n] > 0 {
		return seen[n] == 1
	}
	seen[n] = 1
	defer func() { seen[n] = 2 }()
	return slices.ContainsFunc(n.appliedParts(), func(other *schemaNode) bool { return other.isCircular(seen) })
}

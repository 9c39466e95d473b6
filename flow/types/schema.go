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

// Bounds on one schema.
const (
	maxSchema = 64 << 10 // bytes
	maxNodes  = 2_000    // schemas inside each other, all together
	maxNested = 100

	maxDefaultSteps = 100_000 // of work to fill in a default
)

// node is a schema, ready to be used. What it does not mention is zero.
type node struct {
	never    bool // it is the schema false
	types    kinds
	choices  []json.RawMessage // enum; nil = anything
	only     json.RawMessage   // const; nil = anything
	fallback json.RawMessage   // default
	fills    bool              // something in it has a default

	ref, not, cond, then, otherwise *node
	all, any, one                   []*node

	min, max, above, under, multiple *bound
	minLength, maxLength             limit
	pattern                          *pattern

	prefix               []*node
	items, contains      *node
	minItems, maxItems   limit
	minHeld, maxHeld     limit
	unique               bool
	unseenItems          *node // unevaluatedItems
	properties           map[string]*node
	names                []string // of properties, in the order written
	required             []string
	patterns             []patternNode
	additional           *node
	propertyNames        *node
	minFields, maxFields limit
	needs                map[string][]string // dependentRequired
	implies              map[string]*node    // dependentSchemas
	unseen               *node               // unevaluatedProperties

	description string
}

// kinds is a set of types; none = all.
type kinds uint8

const (
	isNull kinds = 1 << iota
	isBool
	isInt
	isFloat
	isText
	isList
	isObject
)

const isNumeric = isInt | isFloat

// limit is a number of things; a pointer, because 0 is one.
type limit *int

// pattern is a regular expression.
type pattern struct {
	*regexp.Regexp
	states int
}

type patternNode struct {
	*pattern
	*node
}

// compiler makes nodes of a schema.
type compiler struct {
	root     json.RawMessage
	nodes    map[string]*node // by JSON pointer
	anchors  map[string]*node
	refs     []reference
	left     int // how many nodes there may still be
	problems []Problem
}

// reference is one that is looked up when all of the schema is known.
type reference struct {
	from *node
	text string
	path []string
}

// compile makes a node of a schema; nil if there is something wrong with it.
func compile(text json.RawMessage) (*node, []Problem) {
	c := &compiler{root: text, nodes: map[string]*node{}, anchors: map[string]*node{}, left: maxNodes}
	if len(text) > maxSchema {
		c.report(nil, "has %d bytes as a JSON Schema, more than the limit of %d", len(text), maxSchema)
		return nil, c.problems
	}
	root := c.schema(text, nil)
	for i := 0; i < len(c.refs); i++ { // looking one up may find others
		c.resolve(c.refs[i])
	}
	if !slices.ContainsFunc(c.problems, func(p Problem) bool { return !p.Warning }) {
		c.finish()
	}
	return root, c.problems
}

func (c *compiler) report(path []string, format string, args ...any) {
	c.add(Problem{Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (c *compiler) add(p Problem) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, p)
	}
}

// schema makes the node of a schema, once.
func (c *compiler) schema(raw json.RawMessage, path []string) *node {
	pointer := pointerOf(path)
	if n := c.nodes[pointer]; n != nil {
		return n
	}
	n := &node{}
	c.nodes[pointer] = n
	switch c.left--; {
	case c.left < 0:
		if c.left == -1 {
			c.report(path, "the schema has more than %d parts", maxNodes)
		}
		return n
	case len(path) > maxNested:
		c.report(path, "schemas nest no deeper than %d", maxNested)
		return n
	}
	switch kind := expr.KindOf(raw); kind {
	case expr.KindBool:
		n.never = string(raw) == "false"
	case expr.KindObject:
		members, _ := expr.Members(raw)
		for _, m := range members {
			c.keyword(n, m, path)
		}
	default:
		c.report(path, "must be a schema, which is an object, is %s", kind)
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

// resolve finds what a reference means.
func (c *compiler) resolve(r reference) {
	name, ok := strings.CutPrefix(r.text, "#")
	pointer, err := url.PathUnescape(name)
	switch {
	case !ok || err != nil:
		c.report(r.path, "%q is in another document, and nothing is loaded: put it under $defs and write #/$defs/NAME", shorten(r.text))
	case pointer != "" && pointer[0] != '/':
		if r.from.ref = c.anchors[pointer]; r.from.ref == nil {
			c.report(r.path, "there is no $anchor %q", shorten(pointer))
		}
	default:
		c.lookUp(r, pointer)
	}
}

func (c *compiler) lookUp(r reference, pointer string) {
	v, path, ok := c.root, []string(nil), true
	for _, key := range strings.Split(pointer, "/")[1:] {
		if !ok {
			break
		}
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		if i, err := strconv.Atoi(key); err == nil && expr.KindOf(v) == expr.KindArray {
			v, ok = expr.Index(v, i)
			path = append(path, index(i))
			continue
		}
		v, ok = expr.Field(v, key)
		path = append(path, key)
	}
	if !ok {
		c.report(r.path, "there is nothing at %q", shorten(r.text))
		return
	}
	r.from.ref = c.schema(v, path)
}

// finish looks at what can be seen only in the whole: references that lead nowhere but to themselves, and defaults.
func (c *compiler) finish() {
	pointers := make([]string, 0, len(c.nodes))
	for pointer := range c.nodes {
		pointers = append(pointers, pointer)
	}
	slices.Sort(pointers)
	seen := map[*node]int{}
	for _, pointer := range pointers {
		if c.nodes[pointer].circular(seen) {
			c.report(pathOf(pointer), "refers to itself without looking at anything in between")
			return
		}
	}
	for changed := true; changed; {
		changed = false
		for _, n := range c.nodes {
			if !n.fills && slices.ContainsFunc(n.filled(), func(part *node) bool { return part.fallback != nil || part.fills }) {
				n.fills, changed = true, true
			}
		}
	}
	for _, pointer := range pointers {
		if n := c.nodes[pointer]; n.fallback != nil {
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

// checkDefault refuses one that does not fit, or that what it leaves out makes larger without end.
func (c *compiler) checkDefault(n *node, path []string) {
	path = below(path, "default")
	f := filler{left: maxSchema, steps: Budget - maxDefaultSteps}
	v := f.value(n, n.fallback, 0)
	if f.left < 0 {
		c.report(path, "fills itself in without end")
		return
	}
	k := newCheck()
	k.value(n, v, nil, nil)
	for _, p := range k.problems {
		c.report(append(path[:len(path):len(path)], p.Path...), "does not fit what it is the default of: it %s", p.Msg)
	}
	n.fallback = v
}

// beside are the schemas that a value has to do with at once when it has to do with this one.
func (n *node) beside() []*node {
	list := slices.Concat(n.all, n.any, n.one)
	for _, other := range []*node{n.ref, n.not, n.cond, n.then, n.otherwise} {
		if other != nil {
			list = append(list, other)
		}
	}
	for _, other := range n.implies {
		list = append(list, other)
	}
	return list
}

// circular says whether a schema leads back to itself for the same value. Of a node seen is 1 while it is being looked at, then 2.
func (n *node) circular(seen map[*node]int) bool {
	if seen[n] > 0 {
		return seen[n] == 1
	}
	seen[n] = 1
	defer func() { seen[n] = 2 }()
	return slices.ContainsFunc(n.beside(), func(other *node) bool { return other.circular(seen) })
}

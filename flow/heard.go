package flow

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Heard holds the keys of shared that nodes of a flow wait for or read. A signal sets such a key.
type Heard struct {
	All  bool // all of shared is read, so every key has a reader
	Keys []string
}

// Heard returns the keys for a task with the given params, because params may define what nodes
// wait for.
func (p *Plan) Heard(params json.RawMessage) Heard {
	h := &heardCollector{params: params, keys: map[string]bool{}}
	h.addScope(p.Root, true)
	if p.Closing != nil {
		h.addScope(p.Closing, true)
	}
	delete(h.keys, "")
	return Heard{h.readsAll, slices.Sorted(maps.Keys(h.keys))}
}

// Has reports whether a signal with this key has a reader.
func (h Heard) Has(key string) bool { return h.All || slices.Contains(h.Keys, key) }

// heardCollector collects the keys.
type heardCollector struct {
	params   json.RawMessage // params of the task
	keys     map[string]bool
	readsAll bool
}

// addScope adds the keys of a scope. Nodes below the root read a shared state of their own, so only
// the keys that they wait for count.
func (h *heardCollector) addScope(g *PlanScope, root bool) {
	for _, n := range g.Nodes {
		h.addWaitKey(g, n)
		if root {
			h.addPrep(g, n)
			h.addCases(n)
			h.addLimits(n.Keys)
			h.addDag(n.Dag)
		}
		if n.Sub != nil {
			h.addScope(n.Sub, false)
		}
	}
	if root {
		h.addKey(g.Result)
	}
}

// addWaitKey adds the key that a node waits for.
func (h *heardCollector) addWaitKey(g *PlanScope, n *PlanNode) {
	param := awaitedParams[n.Kind]
	if param == "" {
		return
	}
	if !g.Pocketflow {
		key, reference, _ := ReadWaitKey(textField(n.Params, param), g.Mode())
		h.readsAll = h.readsAll || reference
		h.addKey(key)
		return
	}
	params := expr.Merge(n.Params, h.params)
	if g.Flat {
		params = expr.Merge(h.params, n.Params)
	}
	h.addKey(strings.TrimPrefix(textField(params, param), sharedPrefix))
}

const sharedPrefix = "$shared."

// addKey adds the first part of a path into shared.
func (h *heardCollector) addKey(path string) {
	if i := strings.IndexAny(path, ".["); i > 0 {
		h.keys[path] = true // a signal may have set a key with exactly this name
		path = path[:i]
	}
	h.keys[path] = true
}

// addReference adds the key of a reference to shared.
func (h *heardCollector) addReference(text string) {
	switch path, ok := strings.CutPrefix(text, sharedPrefix); {
	case ok && path == "":
		h.readsAll = true
	case ok:
		h.addKey(path)
	}
}

func (h *heardCollector) addPrep(_ *PlanScope, n *PlanNode) {
	if n.Prep.Key != "" && !strings.HasPrefix(n.Prep.Key, "$") {
		h.addKey(n.Prep.Key)
	}
	h.addReference(n.Prep.Key)
	for _, e := range n.Prep.Map {
		h.addReference(e.Text)
	}
}

func (h *heardCollector) addCases(n *PlanNode) {
	if n.Kind == KindChoice && n.Post.ActionStatic == "" {
		h.addKey(n.Post.ActionKey)
	}
	for _, c := range n.Cases {
		if c.CEL != nil {
			h.addCEL(c.CEL)
			continue
		}
		for _, ref := range sharedInJSON.FindAllString(string(c.Text), -1) {
			h.addReference(ref[1:])
		}
	}
}

// sharedInJSON matches the texts in a JSON expression that refer to shared.
var sharedInJSON = regexp.MustCompile(`"\$shared\.[^"]*`)

// sharedInCEL matches each use of shared in an expression: a key of it, or shared as a whole.
var sharedInCEL = regexp.MustCompile(`\bshared\b\s*(?:\.\s*([A-Za-z_]\w*)\s*(\()?|\[\s*["']([^"']*)["']\s*\])?`)

func (h *heardCollector) addCEL(c *expr.CEL) {
	if c == nil {
		return
	}
	for _, found := range sharedInCEL.FindAllStringSubmatch(c.Source(), -1) {
		switch key := found[1] + found[3]; {
		case key == "" || found[2] != "": // all of shared, or a function of it
			h.readsAll = true
		default:
			h.addKey(key)
		}
	}
}

func (h *heardCollector) addLimits(k *Keys) {
	if k == nil {
		return
	}
	for _, l := range []*KeyLimit{k.Concurrency, k.Rate} {
		if l != nil {
			h.addReference(l.Key.Text)
			h.addReference(l.Fair.Text)
		}
	}
	h.addReference(k.Priority.Text)
}

func (h *heardCollector) addDag(n *PlanDag) {
	if n == nil {
		return
	}
	h.addCEL(n.Expr)
	h.addCEL(n.MapExpr)
	for _, ref := range []*PlanRef{n.Map, n.Items, n.Count} {
		h.addRef(ref)
	}
	for _, b := range n.Bindings {
		h.addRef(b.Ref)
	}
}

func (h *heardCollector) addRef(r *PlanRef) {
	if r != nil && r.From == FromShared {
		h.addReference(r.Text)
	}
}

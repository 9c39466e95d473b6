package flow

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Heard are the keys of shared that somebody in a flow waits for or reads, which is what a signal sets.
type Heard struct {
	All  bool // all of shared is read, so no key is in vain
	Keys []string
}

// Heard tells them for a task with some params, which may say what its nodes wait for.
func (p *Plan) Heard(params json.RawMessage) Heard {
	h := &hearing{params: params, keys: map[string]bool{}}
	h.scope(p.Root, true)
	if p.Closing != nil {
		h.scope(p.Closing, true)
	}
	delete(h.keys, "")
	return Heard{h.all, slices.Sorted(maps.Keys(h.keys))}
}

// Has says whether a signal of a key is for somebody.
func (h Heard) Has(key string) bool { return h.All || slices.Contains(h.Keys, key) }

// hearing collects such keys.
type hearing struct {
	params json.RawMessage // of the task
	keys   map[string]bool
	all    bool
}

// scope goes through a scope. Below the root, nodes only wait for what is signaled: they read a shared state of their own.
func (h *hearing) scope(g *PlanScope, root bool) {
	for _, n := range g.Nodes {
		h.waits(g, n)
		if root {
			h.prep(g, n)
			h.cases(n)
			h.limits(n.Keys)
			h.dag(n.Dag)
		}
		if n.Sub != nil {
			h.scope(n.Sub, false)
		}
	}
	if root {
		h.key(g.Result)
	}
}

// waits notes what a node waits for.
func (h *hearing) waits(g *PlanScope, n *PlanNode) {
	param := awaitedParams[n.Kind]
	if param == "" {
		return
	}
	if !g.Pocketflow {
		key, reference, _ := ReadWaitKey(textField(n.Params, param), g.Mode())
		h.all = h.all || reference
		h.key(key)
		return
	}
	params := expr.Merge(n.Params, h.params)
	if g.Flat {
		params = expr.Merge(h.params, n.Params)
	}
	h.key(strings.TrimPrefix(textField(params, param), sharedPrefix))
}

const sharedPrefix = "$shared."

// key notes the first part of a path into shared.
func (h *hearing) key(path string) {
	if i := strings.IndexAny(path, ".["); i > 0 {
		h.keys[path] = true // a signal may have set a key of just this name
		path = path[:i]
	}
	h.keys[path] = true
}

// text notes a reference to shared.
func (h *hearing) text(text string) {
	switch path, ok := strings.CutPrefix(text, sharedPrefix); {
	case ok && path == "":
		h.all = true
	case ok:
		h.key(path)
	}
}

func (h *hearing) prep(_ *PlanScope, n *PlanNode) {
	if n.Prep.Key != "" && !strings.HasPrefix(n.Prep.Key, "$") {
		h.key(n.Prep.Key)
	}
	h.text(n.Prep.Key)
	for _, e := range n.Prep.Map {
		h.text(e.Text)
	}
}

func (h *hearing) cases(n *PlanNode) {
	if n.Kind == KindChoice && n.Post.ActionStatic == "" {
		h.key(n.Post.ActionKey)
	}
	for _, c := range n.Cases {
		if c.CEL != nil {
			h.cel(c.CEL)
			continue
		}
		for _, ref := range sharedInJSON.FindAllString(string(c.Text), -1) {
			h.text(ref[1:])
		}
	}
}

// sharedInJSON are the texts in an expression in JSON that refer to shared.
var sharedInJSON = regexp.MustCompile(`"\$shared\.[^"]*`)

// sharedInCEL is what an expression does with shared: it looks at a key, or at something else of it.
var sharedInCEL = regexp.MustCompile(`\bshared\b\s*(?:\.\s*([A-Za-z_]\w*)\s*(\()?|\[\s*["']([^"']*)["']\s*\])?`)

func (h *hearing) cel(c *expr.CEL) {
	if c == nil {
		return
	}
	for _, found := range sharedInCEL.FindAllStringSubmatch(c.Source(), -1) {
		switch key := found[1] + found[3]; {
		case key == "" || found[2] != "": // all of it, or a function of that
			h.all = true
		default:
			h.key(key)
		}
	}
}

func (h *hearing) limits(k *Keys) {
	if k == nil {
		return
	}
	for _, l := range []*KeyLimit{k.Concurrency, k.Rate} {
		if l != nil {
			h.text(l.Key.Text)
			h.text(l.Fair.Text)
		}
	}
	h.text(k.Priority.Text)
}

func (h *hearing) dag(n *PlanDag) {
	if n == nil {
		return
	}
	h.cel(n.Expr)
	h.cel(n.MapExpr)
	for _, ref := range []*PlanRef{n.Map, n.Items, n.Count} {
		h.ref(ref)
	}
	for _, b := range n.Bindings {
		h.ref(b.Ref)
	}
}

func (h *hearing) ref(r *PlanRef) {
	if r != nil && r.From == FromShared {
		h.text(r.Text)
	}
}

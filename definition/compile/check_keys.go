package compile

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// checkNodeKeyFields checks the fields about keys of a node.
func (c *checker) checkNodeKeyFields(n *definition.Node, p *flow.PlanNode, at *definition.Place) {
	refs := []string{"$params.", "$shared.", "$input", runRef}
	if p.Kind == flow.KindForeach || p.Kind == flow.KindFanout {
		refs = append(refs, itemRef)
	}
	c.keyFields(&n.KeyFields, refs, at)
}

// flowKeys checks the keys of the whole flow.
func (c *checker) flowKeys(d *definition.Definition, at *definition.Place) {
	c.keyFields(&d.KeyFields, []string{"$params.", runRef}, at)
	if len(d.Priority) > 0 && !hasKeys(&d.KeyFields) && !hasKeyedNode(d.Nodes) {
		c.reportByProfile(c.lowered.pocketflow, at.Key("priority"), "has no effect: it orders what waits for a key: "+
			"write concurrency or rate as well, here or at a node")
	}
}

func hasKeys(f *definition.KeyFields) bool { return f.Concurrency != nil || f.Rate != nil }

// hasKeyedNode reports whether a node, or a node inside it, waits for a key. An unavailable nested
// flow counts as one with such a node.
func hasKeyedNode(nodes map[string]*definition.Node) bool {
	for _, n := range nodes {
		if n != nil && (hasKeys(&n.KeyFields) || n.Flow != nil && n.Flow.Definition == nil || hasKeyedNode(nodesInside(n))) {
			return true
		}
	}
	return false
}

func (c *checker) keyFields(f *definition.KeyFields, refs []string, at *definition.Place) {
	if f.Concurrency != nil {
		c.keySpec(f.Concurrency, refs, at.Key("concurrency"))
		if !f.Concurrency.Per.IsZero() {
			c.Errorf(at.Key("concurrency").Key("per"), "belongs to rate: concurrency says how many at once")
		}
	}
	if r := f.Rate; r != nil {
		c.keySpec(r, refs, at.Key("rate"))
		c.checkDuration(r.Per, at.Key("rate").Key("per"))
		if r.Per.MS <= 0 {
			c.Errorf(at.Key("rate").Key("per"), "is missing: say in what time, such as 1s")
		}
		if r.WhenFull == definition.FullCancel {
			c.Errorf(at.Key("rate").Key("when_full"), "what has begun is counted even if it is canceled: write queue or refuse")
		}
	}
	c.checkPriority(f.Priority, refs, at.Key("priority"))
}

func (c fieldChecker) keySpec(s *definition.KeySpec, refs []string, at *definition.Place) {
	c.checkName(s.Name, at.Key("name"))
	if strings.ContainsAny(s.Name, ":/") {
		c.Errorf(at.Key("name"), "may not contain : or /, which separate it from the key, and "+
			"flows from their nodes: write %q", strings.NewReplacer(":", "-", "/", "-").Replace(s.Name))
	}
	c.keyRef(s.Key, refs, at.Key("key"))
	c.keyRef(s.Fair, refs, at.Key("fair"))
	if s.Fair != "" && s.WhenFull == definition.FullRefuse {
		c.Errorf(at.Key("fair"), "has no effect with when_full: refuse, because nothing waits: leave it out")
	}
	switch {
	case s.Limit < 1:
		c.Errorf(at.Key("limit"), "must be 1 at least")
	case s.Limit > math.MaxInt32/2:
		c.Errorf(at.Key("limit"), "is too large: %d", s.Limit)
	}
	switch s.WhenFull {
	case "", definition.FullQueue, definition.FullRefuse, definition.FullCancel:
	default:
		c.Errorf(at.Key("when_full"), "unknown word %.80q: write queue, refuse or cancel_running", s.WhenFull)
	}
}

// keyRef checks that a reference looks into a value that exists.
func (c fieldChecker) keyRef(text string, refs []string, at *definition.Place) {
	c.checkName(text, at)
	if !strings.HasPrefix(text, "$") {
		return
	}
	for _, ref := range refs {
		if _, ok := cutRefName(text, strings.TrimSuffix(ref, ".")); ok && (ref[len(ref)-1] != '.' || strings.HasPrefix(text, ref)) {
			return
		}
	}
	c.Errorf(at, "%.80q is no reference that can be looked up here: write %s", text, strings.Join(refs, "…, ")+"…, or a text")
}

func (c fieldChecker) checkPriority(raw json.RawMessage, refs []string, at *definition.Place) {
	if len(raw) == 0 {
		return
	}
	if text, ok := expr.String(raw); ok && strings.HasPrefix(text, "$") {
		c.keyRef(text, refs, at)
		return
	}
	if n, err := strconv.Atoi(string(raw)); err != nil || n < -flow.MaxPriority || n > flow.MaxPriority {
		c.Errorf(at, "must be a whole number from %d to %d, or a reference to one", -flow.MaxPriority, flow.MaxPriority)
	}
}

package compile

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
)

// keyed checks what a node says about keys.
func (c *checker) keyed(n *define.Node, p *flow.PlanNode, at *define.Place) {
	refs := []string{"$params.", "$shared.", "$input", runRef}
	if p.Kind == flow.KindForeach || p.Kind == flow.KindFanout {
		refs = append(refs, itemRef)
	}
	c.keyFields(&n.KeyFields, refs, at)
	if n.Concurrency == nil && n.Rate == nil {
		if len(n.Priority) > 0 {
			c.Warnf(at.Key("priority"), "has no effect: only what waits for a key has one, so write concurrency or rate as well")
		}
		return
	}
	for _, f := range []struct {
		name string
		spec *define.KeySpec
	}{{"concurrency", n.Concurrency}, {"rate", n.Rate}} {
		switch {
		case f.spec == nil:
		case !hasJobs(p):
			c.Errorf(at.Key(f.name), "nobody carries out this node, so nothing of it can wait: give it to the nodes inside that have a service, func or script, or to the whole flow")
		case p.Exec.Type == flow.ExecDirect:
			c.Errorf(at.Key(f.name), "a direct node has no jobs that could wait: leave it out, or choose another route")
		}
	}
}

// flowKeys checks what the whole flow says about keys.
func (c *checker) flowKeys(d *define.Definition, at *define.Place) {
	c.keyFields(&d.KeyFields, []string{"$params.", runRef}, at)
	if len(d.Priority) > 0 && !hasKeys(&d.KeyFields) && !anyKeyed(d.Nodes) {
		c.Warnf(at.Key("priority"), "has no effect: only what waits for a key has one, so write concurrency or rate as well, here or on a node")
	}
}

func hasKeys(f *define.KeyFields) bool { return f.Concurrency != nil || f.Rate != nil }

// anyKeyed says whether a node waits for a key, or one inside it does. Of a flow that is not at hand nobody knows.
func anyKeyed(nodes map[string]*define.Node) bool {
	for _, n := range nodes {
		if n != nil && (hasKeys(&n.KeyFields) || n.Flow != nil && n.Flow.Definition == nil || anyKeyed(nodesInside(n))) {
			return true
		}
	}
	return false
}

// noFlowKeys refuses those of a flow that is inside another one: there is no task of it.
func (c *checker) noFlowKeys(d *define.Definition, at *define.Place) {
	for _, f := range []struct {
		name string
		said bool
	}{{"concurrency", d.Concurrency != nil}, {"rate", d.Rate != nil}, {"priority", len(d.Priority) > 0}} {
		if f.said {
			c.Errorf(at.Key(f.name), "only the whole flow has one: give it to the nodes inside")
		}
	}
}

func (c *checker) keyFields(f *define.KeyFields, refs []string, at *define.Place) {
	if f.Concurrency != nil {
		c.keySpec(f.Concurrency, refs, at.Key("concurrency"))
		if !f.Concurrency.Per.IsZero() {
			c.Errorf(at.Key("concurrency").Key("per"), "belongs to rate: concurrency says how many at once")
		}
	}
	if r := f.Rate; r != nil {
		c.keySpec(r, refs, at.Key("rate"))
		c.duration(r.Per, at.Key("rate").Key("per"))
		if r.Per.MS <= 0 {
			c.Errorf(at.Key("rate").Key("per"), "is missing: say in what time, such as 1s")
		}
		if r.WhenFull == define.FullCancel {
			c.Errorf(at.Key("rate").Key("when_full"), "what has begun is counted even if it is canceled: write queue or refuse")
		}
	}
	c.priority(f.Priority, refs, at.Key("priority"))
}

func (c *checker) keySpec(s *define.KeySpec, refs []string, at *define.Place) {
	c.name(s.Name, at.Key("name"))
	if strings.ContainsAny(s.Name, ":/") {
		c.Errorf(at.Key("name"), "may not contain : or /, which separate it from the key, and flows from their nodes: write %q", strings.NewReplacer(":", "-", "/", "-").Replace(s.Name))
	}
	c.keyRef(s.Key, refs, at.Key("key"))
	c.keyRef(s.Fair, refs, at.Key("fair"))
	switch {
	case s.Limit < 1:
		c.Errorf(at.Key("limit"), "must be 1 at least")
	case s.Limit > math.MaxInt32/2:
		c.Errorf(at.Key("limit"), "is too large: %d", s.Limit)
	}
	switch s.WhenFull {
	case "", define.FullQueue, define.FullRefuse, define.FullCancel:
	default:
		c.Errorf(at.Key("when_full"), "unknown word %.80q: write queue, refuse or cancel_running", s.WhenFull)
	}
}

// keyRef checks that a reference looks into something that is there.
func (c *checker) keyRef(text string, refs []string, at *define.Place) {
	c.name(text, at)
	if !strings.HasPrefix(text, "$") {
		return
	}
	for _, ref := range refs {
		if _, ok := after(text, strings.TrimSuffix(ref, ".")); ok && (ref[len(ref)-1] != '.' || strings.HasPrefix(text, ref)) {
			return
		}
	}
	c.Errorf(at, "%.80q is no reference that can be looked up here: write %s", text, strings.Join(refs, "…, ")+"…, or a text")
}

func (c *checker) priority(raw json.RawMessage, refs []string, at *define.Place) {
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

package flow

import "strings"

// specials are the nodes of a scope that only run when the task is over: those that compensate others,
// and the flow's finally. They are compiled into a scope of their own, in graph mode.
func (c *compiler) specials(nodes map[string]*Node, finally, prefix string, compile closingCompiler, at *place) map[string]bool {
	named := map[string]bool{}
	for _, key := range inOrder(nodes) {
		if n := nodes[key]; n != nil && n.Compensate != "" {
			c.special(nodes, n.Compensate, at.key("nodes").key(key).key("compensate"))
			named[n.Compensate] = true
		}
	}
	if finally != "" {
		c.special(nodes, finally, at.key("finally"))
		named[finally] = true
	}
	for _, key := range inOrder(nodes) {
		if n := nodes[key]; named[key] && n != nil {
			if c.closing == nil {
				c.closing = &Graph{Nodes: map[string]*PlanNode{}}
			}
			c.closing.Nodes[prefix+key] = compile(prefix+key, n, at.key("nodes").key(key))
		}
	}
	return named
}

// special checks a name that compensate or finally gives.
func (c *compiler) special(nodes map[string]*Node, key string, at *place) {
	n := nodes[key]
	switch {
	case n == nil:
		c.errorf(at, "unknown node %.80q", key)
	case len(n.DependsOn) > 0 || n.When != nil || n.Each != nil:
		c.errorf(at, "node %.80q only runs when the task is over: it has no depends_on, when or each", key)
	case n.Compensate != "":
		c.errorf(at, "node %.80q has a compensate itself: nothing undoes what undoes", key)
	}
}

// closingCompiler compiles a node of the closing scope.
type closingCompiler func(key string, n *Node, at *place) *PlanNode

func (c *compiler) closingNode(key string, n *Node, at *place) *PlanNode {
	return c.node(key, n, nil, &scopeSource{}, at)
}

// closingNode is that of a dag: what it does not say itself it takes from the flow, as every node does.
func (c *dagCompiler) closingNode(key string, n *Node, at *place) *PlanNode {
	if n.Route == routeDirect || c.kind(n, at) != KindExecutor {
		return c.compiler.closingNode(key, n, at)
	}
	c.post(n.Post, at.key("post"))
	p := &PlanNode{Key: key, Kind: KindExecutor, Single: true, Post: n.Post,
		Params: c.params(n.Params, at.key("params")), Prep: c.prep(n.Prep, false, at.key("prep"))}
	p.Exec = c.dagExec(n, key[strings.LastIndexByte(key, '/')+1:], at)
	c.tries(p, n, at)
	c.times(p, n, at)
	return p
}

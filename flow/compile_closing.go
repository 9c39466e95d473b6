package flow

// specials are the nodes of a scope that only run when the task is over: those that compensate others,
// and the flow's finally. They are compiled into a scope of their own, in graph mode.
func (c *compiler) specials(nodes map[string]*Node, finally, prefix string, defaults Exec, at *place) map[string]bool {
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
			c.closingNode(prefix+key, n, defaults, at.key("nodes").key(key))
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

func (c *compiler) closingNode(key string, n *Node, defaults Exec, at *place) {
	if c.closing == nil {
		c.closing = &Graph{Nodes: map[string]*PlanNode{}}
	}
	if n.Route == "" && n.ExecType == "" && n.ExecMode == "" && n.Func == "" && n.Script == nil {
		plain := *n
		plain.ExecType = string(defaults.Type)
		n = &plain
	}
	c.closing.Nodes[key] = c.node(key, n, nil, &scopeSource{}, at)
}

package flow

// exec is how a node says its jobs are carried out, before defaults are settled. What it does not
// say comes from the node that holds its scope.
func (c *compiler) exec(n *Node, defaults Exec, at *place) Exec {
	e := Exec{
		Type:         word(n.ExecType, n.ExecMode),
		Service:      n.Service,
		Func:         n.Func,
		Script:       c.script(n.Script, at.key("script")),
		ByLoad:       n.WeightedByLoad,
		MaxAttempts:  c.count(max(n.MaxAttempts, 0), at.key("max_attempts")),
		TryDelayMS:   c.milliseconds(n.AttemptDelayMS, at.key("attempt_delay_ms")),
		VisibilityMS: c.milliseconds(n.VisibilityMS, at.key("visibility_ms")),
		Labels:       n.Labels,
	}
	for i, label := range e.Labels {
		c.name(label, at.key("labels").index(i))
	}
	c.name(e.Func, at.key("func"))
	c.execType(e.Type, at)
	if e.Type == "" {
		e.Type = defaults.Type
	}
	if e.Func == "" {
		e.Func = defaults.Func
	}
	if e.Script == nil {
		e.Script = defaults.Script
	}
	return e
}

// routed reads route, another word for how jobs travel.
func (c *compiler) routed(n *Node, at *place) *Node {
	r := *n
	switch n.Route {
	case "":
		return n
	case routePush:
		r.ExecType = string(ExecHTTP)
	case routeQueue:
		r.ExecType = string(ExecQueue)
	case routeDirect:
		c.errorf(at.key("route"), "a node of graph mode that is finished from outside is an approval or a wait_event")
	default:
		c.errorf(at.key("route"), "unknown word %.80q: write push or queue", n.Route)
	}
	return &r
}

// overlay lays what a spec says over what its node says.
func (c *compiler) overlay(e Exec, s ExecSpec, at *place) Exec {
	if t := word(s.ExecType, s.ExecMode); t != "" {
		c.execType(t, at)
		e.Type = t
	}
	if s.Func != "" {
		e.Func = s.Func
	}
	if script := c.script(s.Script, at.key("script")); script != nil {
		e.Script = script
	}
	e.Params = c.params(s.Params, at.key("params"))
	return e
}

// word is the exec_type, or what the older name of that field says.
func word(execType, execMode string) ExecType {
	if execType == "" {
		execType = execMode
	}
	return ExecType(execType)
}

func (c *compiler) execType(t ExecType, at *place) (known bool) {
	switch t {
	case "", ExecHTTP, ExecQueue, ExecFunc, ExecScript, ExecDirect:
		return true
	}
	c.errorf(at.key("exec_type"), "unsupported exec %.80q: write http, queue, local_func or local_script", t)
	return false
}

// script is a script that has something to run; an empty one counts as none.
func (c *compiler) script(s *Script, at *place) *Script {
	if s == nil || s.Cmd == "" && s.Code == "" {
		return nil
	}
	c.milliseconds(s.TimeoutMS, at.key("timeout_ms"))
	return s
}

// settle decides what was left open: a script or function without a service is run, everything else goes to
// a worker. What the jobs need has to be there if they are certain to be made from this.
func (c *compiler) settle(e Exec, at *place, certain bool) Exec {
	c.name(e.Service, at.key("service"))
	switch {
	case e.Type != "":
	case e.Script != nil && e.Service == "":
		e.Type = ExecScript
	case e.Func != "" && e.Service == "":
		e.Type = ExecFunc
	default:
		e.Type = ExecHTTP
	}
	if !certain {
		return e
	}
	switch {
	case e.Type == ExecFunc && e.Func == "":
		c.errorf(at.key("func"), "is missing: say which local function to call")
	case e.Type == ExecScript && e.Script == nil:
		c.errorf(at.key("script"), "is missing: give it a cmd or code")
	case e.Type == ExecQueue && e.Service == "":
		c.errorf(at.key("service"), "is missing: say whose queue the job waits in")
	case e.Type == ExecHTTP && e.Service == "":
		c.warnf(at.key("service"), "is missing: no worker can be found for this")
	}
	return e
}

// unitsExec is what a parallel's branches are made from when only params.services names them.
func (c *compiler) unitsExec(e Exec, at *place) Exec {
	if e.Type == "" {
		e.Type = ExecHTTP
	}
	return c.settle(e, at, false)
}

// branches are those of parallel_execs, else of parallel_services. Position tells branches of the
// same name apart.
func (c *compiler) branches(n *Node, base Exec, at *place) []Branch {
	var out []Branch
	for i, s := range n.ParallelExecs {
		at := at.key("parallel_execs").index(i)
		e := c.overlay(base, s, at)
		e.Service = s.Service
		out = append(out, Branch{Name: s.Service, Exec: c.settle(e, at, true)})
	}
	if len(out) == 0 {
		for i, name := range n.ParallelServices {
			e := base
			e.Service = name
			out = append(out, Branch{Name: name, Exec: c.settle(e, at.key("parallel_services").index(i), true)})
		}
	}
	if len(out) > c.limits.Units {
		c.errorf(at, "%d branches, more than the %d units a step may have", len(out), c.limits.Units)
	}
	return out
}

// items are the items of a foreach that are carried out differently. The service stays the node's.
func (c *compiler) items(n *Node, base Exec, at *place) map[int]Exec {
	var out map[int]Exec
	for i, s := range n.ForeachExecs {
		at := at.key("foreach_execs").index(i)
		if s.Index < 0 {
			c.errorf(at.key("index"), "must not be negative")
			continue
		}
		e := c.settle(c.overlay(base, s, at), at, true)
		if _, dup := out[s.Index]; dup {
			c.warnf(at, "the item %d has an entry already: this one is ignored", s.Index)
			continue
		}
		if out == nil {
			out = map[int]Exec{}
		}
		out[s.Index] = e
	}
	return out
}

// childSpec is the entry of subflow_execs for a child.
type childSpec struct {
	ExecSpec
	at *place
}

// childSpecs finds the first entry of subflow_execs for each child.
func (c *compiler) childSpecs(s *scopeSource) map[string]*childSpec {
	out := make(map[string]*childSpec, len(s.specs))
	for i, spec := range s.specs {
		at := s.specsAt.index(i)
		switch _, known := s.nodes[spec.Node]; {
		case !known:
			c.warnf(at.key("node"), "the subflow has no node %.80q: this entry is ignored", spec.Node)
		case out[spec.Node] != nil:
			c.warnf(at, "the node %.80q has an entry already: this one is ignored", spec.Node)
		default:
			out[spec.Node] = &childSpec{spec, at}
		}
	}
	return out
}

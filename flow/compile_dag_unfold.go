package flow

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Words of exec.type.
const (
	execService = "service"
	execFunc    = "func"
)

// unfolded are nodes in which exec, delay and signal have become the fields that graph mode has, too.
func (c *dagCompiler) unfolded(nodes map[string]*Node, at *place) map[string]*Node {
	folded := func(n *Node) bool { return n != nil && (n.Exec != nil || !n.Delay.IsZero() || n.Signal != nil) }
	if !slices.ContainsFunc(slices.Collect(maps.Values(nodes)), folded) {
		return nodes
	}
	all := maps.Clone(nodes)
	for key, n := range nodes {
		if folded(n) {
			own := *n
			all[key] = &own
			c.unfoldExec(&own, at.key(key).key("exec"))
			c.unfoldParams(&own, at.key(key))
			own.Exec, own.Delay, own.Signal = nil, Duration{}, nil
		}
	}
	return all
}

func (c *dagCompiler) unfoldExec(n *Node, at *place) {
	e := n.Exec
	switch {
	case e == nil:
		return
	case n.Service != "" || n.Func != "" || n.Script != nil || n.ExecType != "" || n.ExecMode != "":
		c.errorf(at, "says the same as service, func, script and exec_type: give one of them")
	case e.Type != "" && e.Type != execService && e.Type != execFunc:
		c.errorf(at.key("type"), "unknown word %.80q: write service or func; for a program write script in the place of exec", e.Type)
		n.Service = e.Type // so that nothing follows from it
		return
	case e.Service != "" && (e.Func != "" || e.Type == execFunc), e.Func != "" && e.Type == execService:
		c.errorf(at, "is a service or a func, not both")
	}
	n.Service, n.Func = e.Service, e.Func
	if e.Func != "" || e.Type == execFunc {
		n.ExecType = string(ExecFunc)
	}
}

func (c *dagCompiler) unfoldParams(n *Node, at *place) {
	kind := Kind(n.Kind)
	key := map[Kind]string{KindWaitEvent: "signal_key", KindApproval: "approval_key"}[kind]
	delay, signal := at.key("delay"), at.key("signal")
	if !n.Delay.IsZero() {
		if kind != KindTimer {
			c.errorf(delay, "is for a timer: units of other nodes wait by start_delay")
		}
		c.unfoldParam(n, "delay_ms", milliText(c.duration(n.Delay, delay)), delay)
	}
	if n.Signal == nil {
		return
	}
	if key == "" {
		c.errorf(signal, "is for a wait_event or an approval")
		return
	}
	if n.Signal.Key != "" {
		c.unfoldParam(n, key, expr.Quote(n.Signal.Key), signal.key("key"))
	}
	if t := n.Signal.Timeout; !t.IsZero() {
		c.unfoldParam(n, "timeout_ms", milliText(c.duration(t, signal.key("timeout"))), signal.key("timeout"))
	}
}

func milliText(ms int64) json.RawMessage { return strconv.AppendInt(nil, ms, 10) }

// unfoldParam adds one param.
func (c *dagCompiler) unfoldParam(n *Node, name string, value json.RawMessage, at *place) {
	if _, twice := expr.Field(n.Params, name); twice {
		c.errorf(at, "says the same as params.%s: give one of them", name)
		return
	}
	one := append(append(expr.AppendQuote([]byte{'{'}, name), ':'), value...)
	n.Params = expr.Merge(n.Params, append(one, '}'))
}

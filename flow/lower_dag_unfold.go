package flow

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Words of exec.type.
const (
	execService = "service"
	execFunc    = "func"
)

// unfolded are nodes in which exec, delay and signal have become the fields that graph mode has, too.
func unfolded(nodes map[string]*Node) map[string]*Node {
	var all map[string]*Node
	for key, n := range nodes {
		if !n.folded() {
			continue
		}
		if all == nil {
			all = maps.Clone(nodes)
		}
		own := *n
		own.unfold()
		all[key] = &own
	}
	if all == nil {
		return nodes
	}
	return all
}

func (n *Node) folded() bool {
	return n != nil && (n.Exec != nil || !n.Delay.IsZero() || n.Signal != nil)
}

// unfold lets what is written in the other way, and twice, count as it is written there.
func (n *Node) unfold() {
	if e := n.Exec; e != nil && !n.saysExec() {
		n.Service, n.Func = e.Service, e.Func
		switch {
		case e.Type != "" && e.Type != execService && e.Type != execFunc:
			n.Service = e.Type
		case e.Func != "" || e.Type == execFunc:
			n.ExecType = string(ExecFunc)
		}
	}
	if !n.Delay.IsZero() {
		n.unfoldParam("delay_ms", milliText(n.Delay.MS))
	}
	if key := signalKeys[Kind(n.Kind)]; key != "" && n.Signal != nil {
		if n.Signal.Key != "" {
			n.unfoldParam(key, expr.Quote(n.Signal.Key))
		}
		if !n.Signal.Timeout.IsZero() {
			n.unfoldParam("timeout_ms", milliText(n.Signal.Timeout.MS))
		}
	}
	n.Exec, n.Delay, n.Signal = nil, Duration{}, nil
}

// signalKeys are the params in which nodes say what they wait for.
var signalKeys = map[Kind]string{KindWaitEvent: "signal_key", KindApproval: "approval_key"}

// saysExec says whether a node says without exec who does its work.
func (n *Node) saysExec() bool {
	return n.Service != "" || n.Func != "" || n.Script != nil || n.ExecType != "" || n.ExecMode != ""
}

func milliText(ms int64) json.RawMessage { return strconv.AppendInt(nil, ms, 10) }

// unfoldParam adds one param.
func (n *Node) unfoldParam(name string, value json.RawMessage) {
	if _, twice := expr.Field(n.Params, name); twice {
		return
	}
	one := append(append(expr.AppendQuote([]byte{'{'}, name), ':'), value...)
	n.Params = expr.Merge(n.Params, append(one, '}'))
}

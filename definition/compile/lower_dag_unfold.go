package compile

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Values of exec.type.
const (
	execService = "service"
	execFunc    = "func"
)

// unfoldNodes returns the nodes with exec, delay and signal converted to the fields that graph mode
// also has. An exec with a program is kept.
func unfoldNodes(nodes map[string]*definition.Node) map[string]*definition.Node {
	var all map[string]*definition.Node
	for key, n := range nodes {
		if !isFolded(n) {
			continue
		}
		if all == nil {
			all = maps.Clone(nodes)
		}
		own := *n
		unfoldNode(&own)
		all[key] = &own
	}
	if all == nil {
		return nodes
	}
	return all
}

// isFolded reports whether a node uses one of these notations.
func isFolded(n *definition.Node) bool {
	return n != nil && (n.Exec != nil && !isLocalProgram(n) || !n.Delay.IsZero() || n.Signal != nil)
}

// unfoldNode converts one node. If a value is written in both notations, the notation with plain
// fields applies.
func unfoldNode(n *definition.Node) {
	*n = *asServiceNode(n)
	if e := n.Exec; e != nil && e.Program() == nil && !saysExec(n) {
		n.Service, n.Func = e.Service, e.Func
		switch {
		case e.Type != "" && e.Type != execService && e.Type != execFunc:
			n.Service = e.Type
		case e.Func != "" || e.Type == execFunc:
			n.ExecType = string(flow.ExecFunc)
		}
	}
	if !n.Delay.IsZero() {
		unfoldParam(n, "delay_ms", milliText(n.Delay.MS))
	}
	if key := signalKeys[flow.Kind(n.Kind)]; key != "" && n.Signal != nil {
		if n.Signal.Key != "" {
			unfoldParam(n, key, expr.Quote(n.Signal.Key))
		}
		if !n.Signal.Timeout.IsZero() {
			unfoldParam(n, "timeout_ms", milliText(n.Signal.Timeout.MS))
		}
	}
	if n.Exec.Program() == nil {
		n.Exec = nil
	}
	n.Delay, n.Signal = definition.Duration{}, nil
}

// signalKeys maps kinds to the param with the key that they wait for.
var signalKeys = map[flow.Kind]string{flow.KindWaitEvent: "signal_key", flow.KindApproval: "approval_key"}

// saysExec reports whether a node without exec defines what does its work.
func saysExec(n *definition.Node) bool {
	return n.Service != "" || n.Func != "" || n.Script != nil || n.ExecType != "" || n.ExecMode != ""
}

func milliText(ms int64) json.RawMessage { return strconv.AppendInt(nil, ms, 10) }

// unfoldParam adds one param.
func unfoldParam(n *definition.Node, name string, value json.RawMessage) {
	if _, twice := expr.Field(n.Params, name); twice {
		return
	}
	one := append(append(expr.AppendQuote([]byte{'{'}, name), ':'), value...)
	n.Params = expr.Merge(n.Params, append(one, '}'))
}

package hook

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Delivery is a signed request to a hook.
type Delivery struct {
	Hook, ID string
	Headers  map[string][]string // names in lower case
	Query    map[string][]string
	Body     json.RawMessage // value as returned by Body
}

// Act is the effect of a delivery.
type Act struct {
	Ignored bool // the delivery has no effect, because when is false

	Key    string // idempotency key of the start
	Params json.RawMessage
	Labels map[string]string

	Task  string // id of the task to signal; "" for the task with Key
	Value json.RawMessage
}

// StartKey returns the key of a start for a single delivery.
func StartKey(hook, delivery string) string { return "hook/" + hook + "/" + delivery }

// maxKey is the maximum length of a start's key, and of a task's id.
const maxKey = 500

// Decide returns the effect of a delivery. If the delivery is invalid, the error is a flow.Error.
func (h *Hook) Decide(d *Delivery) (a Act, err error) {
	e := &deliveryEval{vars: d.exprVars(), allowed: expr.NewAllowance()}
	if h.when != nil {
		if is, err := h.when.On(e.allowed).Bool(e.vars); err != nil {
			return a, invalidError("when", err)
		} else if !is {
			return Act{Ignored: true}, nil
		}
	}
	a.Key = StartKey(d.Hook, d.ID)
	if h.key != nil {
		if a.Key, err = e.evalText("key", h.key); err != nil {
			return a, err
		}
	}
	if h.Signal != "" {
		return h.signalAct(a, e, d)
	}
	return h.startAct(a, e, d)
}

func (h *Hook) signalAct(a Act, e *deliveryEval, d *Delivery) (_ Act, err error) {
	if h.task != nil {
		if a.Task, err = e.evalText("task", h.task); err != nil {
			return a, err
		}
	}
	a.Value, err = e.evalTemplate("value", h.value, d)
	return a, err
}

func (h *Hook) startAct(a Act, e *deliveryEval, d *Delivery) (_ Act, err error) {
	for _, name := range slices.Sorted(maps.Keys(h.labels)) {
		text, err := e.evalText("labels."+name, h.labels[name])
		if err != nil {
			return a, err
		}
		if a.Labels == nil {
			a.Labels = map[string]string{}
		}
		a.Labels[name] = text
	}
	a.Params, err = e.evalTemplate("params", h.params, d)
	return a, err
}

// deliveryEval evaluates the expressions of one delivery.
type deliveryEval struct {
	vars    expr.Vars
	allowed *expr.Allowance
}

func (e *deliveryEval) evalExpr(c *expr.CEL) (json.RawMessage, error) {
	return c.On(e.allowed).Eval(e.vars)
}

// evalTemplate returns the value of a template, or the body if t is nil.
func (e *deliveryEval) evalTemplate(where string, t *valueTemplate, d *Delivery) (json.RawMessage, error) {
	if t == nil {
		return d.Body, nil
	}
	v, err := t.appendTo(nil, e)
	if err != nil {
		return nil, invalidError(where, err)
	}
	return v, nil
}

// evalText returns the value of an expression as the text of a name. The value must be a text, a
// number or a boolean.
func (e *deliveryEval) evalText(where string, c *expr.CEL) (string, error) {
	v, err := e.evalExpr(c)
	if err != nil {
		return "", invalidError(where, err)
	}
	text, ok := expr.String(v)
	switch kind := expr.KindOf(v); {
	case kind == expr.KindNumber || kind == expr.KindBool:
		text = string(v)
	case !ok:
		return "", flow.Errorf(flow.Invalid, "%s: it gives %s, not a text", where, kind)
	}
	if text == "" || len(text) > maxKey || !flow.IsText(text) {
		return "", flow.Errorf(flow.Invalid,
			"%s: it gives a text that is empty, longer than %d bytes, or holds the character U+0000",
			where, maxKey)
	}
	if !flow.IsName(text) {
		return "", flow.Errorf(flow.Invalid, "%s: the text %.80q %s", where, text, flow.NoName)
	}
	return text, nil
}

func invalidError(where string, err error) error {
	return flow.Errorf(flow.Invalid, "%s: %v", where, err)
}

// exprVars returns the variables of a delivery's expressions.
func (d *Delivery) exprVars() expr.Vars {
	return func(name string) (expr.Source, bool) {
		switch name {
		case "body":
			return expr.Raw(d.Body), true
		case "headers":
			return expr.Raw(textsObject(d.Headers, hiddenHeaders)), true
		case "query":
			return expr.Raw(textsObject(d.Query, nil)), true
		case "delivery":
			return expr.Raw(expr.Quote(d.ID)), true
		case "hook":
			return expr.Raw(expr.Quote(d.Hook)), true
		}
		return expr.Source{}, false
	}
}

// hiddenHeaders are headers that expressions must not see.
var hiddenHeaders = []string{"authorization", "proxy-authorization", "cookie"}

// textsObject returns texts by name as a JSON object. Several texts with the same name are joined
// with commas, as in HTTP headers.
func textsObject(texts map[string][]string, without []string) json.RawMessage {
	b := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if slices.Contains(without, name) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(expr.AppendQuote(b, name), ':')
		b = expr.AppendQuote(b, strings.Join(texts[name], ", "))
	}
	return append(b, '}')
}

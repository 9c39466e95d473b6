package hook

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow/expr"
)

// valueTemplate is a JSON value in which every text is an expression. All other parts are constant.
type valueTemplate struct {
	expr   *expr.CEL
	fields []templateField // fields of an object
	items  []*valueTemplate
	fixed  json.RawMessage // any other constant
	kind   expr.Kind
}

type templateField struct {
	key   string
	value *valueTemplate
}

// maxTemplateDepth is the maximum nesting of templates.
const maxTemplateDepth = 50

func (c *compiler) compileTemplate(where string, v json.RawMessage) *valueTemplate {
	if len(v) == 0 {
		return nil
	}
	if !expr.Valid(v) || expr.Deeper(v, maxTemplateDepth) {
		c.addProblem(where, "it is no JSON value, or nested deeper than %d levels", maxTemplateDepth)
		return nil
	}
	return c.compilePart(where, v)
}

func (c *compiler) compilePart(where string, v json.RawMessage) *valueTemplate {
	t := &valueTemplate{kind: expr.KindOf(v)}
	switch t.kind {
	case expr.KindString:
		source, _ := expr.String(v) // always a string here
		t.expr = c.compileExpr(where, source)
	case expr.KindObject:
		members, _ := expr.Members(v)
		for _, m := range members {
			t.fields = append(t.fields, templateField{m.Key, c.compilePart(where+"."+m.Key, m.Value)})
		}
	case expr.KindArray:
		items, _ := expr.Elements(v)
		for i, item := range items {
			t.items = append(t.items, c.compilePart(fmt.Sprintf("%s[%d]", where, i), item))
		}
	default:
		t.fixed = expr.Compact(v)
	}
	return t
}

// appendTo appends the value that the template has for a delivery.
func (t *valueTemplate) appendTo(b []byte, e *deliveryEval) ([]byte, error) {
	switch t.kind {
	case expr.KindString:
		v, err := e.evalExpr(t.expr)
		return append(b, v...), err
	case expr.KindObject:
		return t.appendObject(b, e)
	case expr.KindArray:
		return t.appendArray(b, e)
	}
	return append(b, t.fixed...), nil
}

func (t *valueTemplate) appendObject(b []byte, e *deliveryEval) (_ []byte, err error) {
	b = append(b, '{')
	for i, f := range t.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(expr.AppendQuote(b, f.key), ':')
		if b, err = f.value.appendTo(b, e); err != nil {
			return nil, fmt.Errorf("%s: %w", f.key, err)
		}
	}
	return append(b, '}'), nil
}

func (t *valueTemplate) appendArray(b []byte, e *deliveryEval) (_ []byte, err error) {
	b = append(b, '[')
	for i, item := range t.items {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = item.appendTo(b, e); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return append(b, ']'), nil
}

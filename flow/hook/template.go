package hook

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow/expr"
)

// template is a JSON value in which every text is an expression, and everything else means itself.
type template struct {
	expr   *expr.CEL
	fields []field // of an object
	items  []*template
	fixed  json.RawMessage // of anything else
	kind   expr.Kind
}

type field struct {
	key   string
	value *template
}

// maxDeep bounds how deep templates are nested.
const maxDeep = 50

func (c *compiler) template(where string, v json.RawMessage) *template {
	if len(v) == 0 {
		return nil
	}
	if !expr.Valid(v) || expr.Deeper(v, maxDeep) {
		c.problem(where, "it is no JSON value, or nested deeper than %d levels", maxDeep)
		return nil
	}
	return c.part(where, v)
}

func (c *compiler) part(where string, v json.RawMessage) *template {
	t := &template{kind: expr.KindOf(v)}
	switch t.kind {
	case expr.KindString:
		source, _ := expr.String(v) // it is one
		t.expr = c.expression(where, source)
	case expr.KindObject:
		members, _ := expr.Members(v)
		for _, m := range members {
			t.fields = append(t.fields, field{m.Key, c.part(where+"."+m.Key, m.Value)})
		}
	case expr.KindArray:
		items, _ := expr.Elements(v)
		for i, item := range items {
			t.items = append(t.items, c.part(fmt.Sprintf("%s[%d]", where, i), item))
		}
	default:
		t.fixed = expr.Compact(v)
	}
	return t
}

// appendTo writes the value that a template has for a delivery.
func (t *template) appendTo(b []byte, e *evaluation) ([]byte, error) {
	switch t.kind {
	case expr.KindString:
		v, err := e.eval(t.expr)
		return append(b, v...), err
	case expr.KindObject:
		return t.object(b, e)
	case expr.KindArray:
		return t.array(b, e)
	}
	return append(b, t.fixed...), nil
}

func (t *template) object(b []byte, e *evaluation) (_ []byte, err error) {
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

func (t *template) array(b []byte, e *evaluation) (_ []byte, err error) {
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

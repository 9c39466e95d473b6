package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// celExpression is a CEL expression with its meaning, which is derived from the definition of CEL
// and not from package expr. The function evaluate returns ok = false if the evaluation fails.
type celExpression struct {
	text     string
	evaluate func(vars object) (v any, ok bool)
}

// celExpressions draws expressions and finds them again by their text.
type celExpressions struct {
	rng    *rand.Rand
	byText map[string]celExpression
}

func (x *celExpressions) recordExpr(e celExpression) string {
	x.byText[e.text] = e
	return e.text
}

// drawCondition draws a boolean expression about fields of some variables.
func (x *celExpressions) drawCondition(depth int, fields ...string) celExpression {
	if depth > 0 && x.rng.IntN(2) == 0 {
		a, b := x.drawCondition(depth-1, fields...), x.drawCondition(depth-1, fields...)
		switch x.rng.IntN(3) {
		case 0:
			return notExpr(a)
		case 1:
			return logicExpr(a, b, false)
		default:
			return logicExpr(a, b, true)
		}
	}
	switch x.rng.IntN(4) {
	case 0:
		return hasExpr(pickOne(x.rng, fields...))
	case 1:
		return equalExpr(fieldExpr(pickOne(x.rng, fields...)),
			literalExpr(pickOne[any](x.rng, "paid", "free", float64(x.rng.IntN(50)), nil)))
	case 2:
		return largerExpr(sizeExpr(fieldExpr(pickOne(x.rng, fields...))), literalExpr(float64(x.rng.IntN(3))))
	default:
		return largerExpr(x.drawNumber(fields...), literalExpr(float64(x.rng.IntN(100))))
	}
}

func (x *celExpressions) drawNumber(fields ...string) celExpression {
	f := fieldExpr(pickOne(x.rng, fields...))
	if x.rng.IntN(2) == 0 {
		return sumExpr(f, x.rng.IntN(9))
	}
	return f
}

// drawValue draws an expression of any type.
func (x *celExpressions) drawValue(fields ...string) celExpression {
	switch x.rng.IntN(5) {
	case 0:
		return x.drawNumber(fields...)
	case 1:
		return x.drawCondition(1, fields...)
	case 2:
		return ternaryExpr(x.drawCondition(1, fields...), x.drawNumber(fields...), literalExpr("other"))
	default:
		return objectExpr(x.drawNumber(fields...), fieldExpr(pickOne(x.rng, fields...)))
	}
}

func literalExpr(v any) celExpression {
	return celExpression{string(encodeValue(v)), func(object) (any, bool) { return v, true }}
}

// fieldExpr returns a field of a variable, such as run.n. For a dependency without an output it is
// null.
func fieldExpr(path string) celExpression {
	of, key := splitPath(path)
	return celExpression{path, func(vars object) (any, bool) {
		o, ok := vars[of].(object)
		v, there := o[key]
		if sees, _ := vars["sees"].([]string); of == "deps" && !there {
			there = slices.Contains(sees, key)
		}
		return v, ok && there
	}}
}

// hasExpr tests whether an object has a field. It fails for a list and is false for a scalar.
func hasExpr(path string) celExpression {
	of, key := splitPath(path)
	return celExpression{"has(" + path + ")", func(vars object) (any, bool) {
		o, _ := vars[of].(object)
		_, there := o[key]
		_, list := vars[of].([]any)
		return there, !list
	}}
}

func splitPath(path string) (of, key string) {
	for i := range path {
		if path[i] == '.' {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

func sumExpr(a celExpression, n int) celExpression {
	return celExpression{a.text + " + " + strconv.Itoa(n), func(vars object) (any, bool) {
		f, ok := numberOf(a, vars)
		return f + float64(n), ok
	}}
}

func sizeExpr(a celExpression) celExpression {
	return celExpression{"size(" + a.text + ")", func(vars object) (any, bool) {
		v, ok := a.evaluate(vars)
		switch v := v.(type) {
		case []any:
			return float64(len(v)), ok
		case object:
			return float64(len(v)), ok
		case string:
			return float64(len(v)), ok
		}
		return nil, false
	}}
}

func largerExpr(a, b celExpression) celExpression {
	return celExpression{a.text + " > " + b.text, func(vars object) (any, bool) {
		f, ok := numberOf(a, vars)
		g, ok2 := numberOf(b, vars)
		return f > g, ok && ok2
	}}
}

func numberOf(e celExpression, vars object) (float64, bool) {
	v, ok := e.evaluate(vars)
	f, isNumber := v.(float64)
	return f, ok && isNumber
}

// equalExpr compares with a scalar literal.
func equalExpr(a, b celExpression) celExpression {
	return celExpression{a.text + " == " + b.text, func(vars object) (any, bool) {
		v, ok := a.evaluate(vars)
		w, _ := b.evaluate(vars)
		switch v.(type) {
		case object, []any:
			return false, ok
		}
		return v == w, ok
	}}
}

func notExpr(a celExpression) celExpression {
	return celExpression{"!(" + a.text + ")", func(vars object) (any, bool) {
		v, ok := a.evaluate(vars)
		yes, _ := v.(bool)
		return !yes, ok
	}}
}

// logicExpr is
//
// or &&. A single deciding operand suffices, even if the other operand fails.
func logicExpr(a, b celExpression, decides bool) celExpression {
	op := " && "
	if decides {
		op = " || "
	}
	return celExpression{"(" + a.text + ")" + op + "(" + b.text + ")", func(vars object) (any, bool) {
		v, ok := a.evaluate(vars)
		w, ok2 := b.evaluate(vars)
		if ok && v == decides || ok2 && w == decides {
			return decides, true
		}
		return !decides, ok && ok2
	}}
}

func ternaryExpr(when, then, or celExpression) celExpression {
	return celExpression{fmt.Sprintf("%s ? dyn(%s) : dyn(%s)", parenthesize(when), then.text, or.text), func(vars object) (any, bool) {
		v, ok := when.evaluate(vars)
		switch {
		case !ok:
			return nil, false
		case v == true:
			return then.evaluate(vars)
		}
		return or.evaluate(vars)
	}}
}

func parenthesize(e celExpression) string { return "(" + e.text + ")" }

// objectExpr returns an object with a value and a list.
func objectExpr(a, b celExpression) celExpression {
	return celExpression{fmt.Sprintf(`{"n": %s, "list": [dyn(%s), dyn(1)]}`, a.text, b.text), func(vars object) (any, bool) {
		v, ok := a.evaluate(vars)
		w, ok2 := b.evaluate(vars)
		return object{"n": v, "list": []any{w, 1.0}}, ok && ok2
	}}
}

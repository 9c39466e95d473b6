package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// celExpression is one in CEL, and what it means: written from CEL's definition, not from how the
// core evaluates it. ok is false where an evaluation fails.
type celExpression struct {
	text     string
	evaluate func(vars object) (v any, ok bool)
}

// celExpressions draws them, and finds them again by their text.
type celExpressions struct {
	rng    *rand.Rand
	byText map[string]celExpression
}

func (x *celExpressions) recordExpr(e celExpression) string {
	x.byText[e.text] = e
	return e.text
}

// drawCondition is one that gives a boolean, about fields of some variables.
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
		return equalExpr(fieldExpr(pickOne(x.rng, fields...)), literalExpr(pickOne[any](x.rng, "paid", "free", float64(x.rng.IntN(50)), nil)))
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

// drawValue is one that gives anything.
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

// fieldExpr of a variable, such as run.n. That of a dependency without an output is null.
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

// hasExpr reports whether an object has a field. A list cannot be asked, and what is neither has
// none.
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

// equalExpr compares with a literal that is no list and no object.
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

// logicExpr is || or &&: one side that decides is enough, whatever the other one is.
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

// objectExpr is an object of a value and a list.
func objectExpr(a, b celExpression) celExpression {
	return celExpression{fmt.Sprintf(`{"n": %s, "list": [dyn(%s), dyn(1)]}`, a.text, b.text), func(vars object) (any, bool) {
		v, ok := a.evaluate(vars)
		w, ok2 := b.evaluate(vars)
		return object{"n": v, "list": []any{w, 1.0}}, ok && ok2
	}}
}

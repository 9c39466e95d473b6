package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// expression is one in CEL, and what it means: written from CEL's definition, not from how the core
// evaluates it. ok is false where an evaluation fails.
type expression struct {
	text string
	mean func(vars object) (v any, ok bool)
}

// expressions draws them, and finds them again by their text.
type expressions struct {
	rng  *rand.Rand
	seen map[string]expression
}

func (x *expressions) keep(e expression) string {
	x.seen[e.text] = e
	return e.text
}

// condition is one that gives a boolean, about fields of some variables.
func (x *expressions) condition(depth int, fields ...string) expression {
	if depth > 0 && x.rng.IntN(2) == 0 {
		a, b := x.condition(depth-1, fields...), x.condition(depth-1, fields...)
		switch x.rng.IntN(3) {
		case 0:
			return not(a)
		case 1:
			return either(a, b, false)
		default:
			return either(a, b, true)
		}
	}
	switch x.rng.IntN(4) {
	case 0:
		return has(pick(x.rng, fields...))
	case 1:
		return equal(field(pick(x.rng, fields...)), literal(pick[any](x.rng, "paid", "free", float64(x.rng.IntN(50)), nil)))
	case 2:
		return larger(size(field(pick(x.rng, fields...))), literal(float64(x.rng.IntN(3))))
	default:
		return larger(x.number(fields...), literal(float64(x.rng.IntN(100))))
	}
}

func (x *expressions) number(fields ...string) expression {
	f := field(pick(x.rng, fields...))
	if x.rng.IntN(2) == 0 {
		return sum(f, x.rng.IntN(9))
	}
	return f
}

// value is one that gives anything.
func (x *expressions) value(fields ...string) expression {
	switch x.rng.IntN(5) {
	case 0:
		return x.number(fields...)
	case 1:
		return x.condition(1, fields...)
	case 2:
		return choose(x.condition(1, fields...), x.number(fields...), literal("other"))
	default:
		return together(x.number(fields...), field(pick(x.rng, fields...)))
	}
}

func literal(v any) expression {
	return expression{string(encoded(v)), func(object) (any, bool) { return v, true }}
}

// field of a variable, such as run.n. That of a dependency without an output is null.
func field(path string) expression {
	of, key := split(path)
	return expression{path, func(vars object) (any, bool) {
		o, ok := vars[of].(object)
		v, there := o[key]
		if sees, _ := vars["sees"].([]string); of == "deps" && !there {
			there = slices.Contains(sees, key)
		}
		return v, ok && there
	}}
}

// has says whether an object has a field. A list cannot be asked, and what is neither has none.
func has(path string) expression {
	of, key := split(path)
	return expression{"has(" + path + ")", func(vars object) (any, bool) {
		o, _ := vars[of].(object)
		_, there := o[key]
		_, list := vars[of].([]any)
		return there, !list
	}}
}

func split(path string) (of, key string) {
	for i := range path {
		if path[i] == '.' {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

func sum(a expression, n int) expression {
	return expression{a.text + " + " + strconv.Itoa(n), func(vars object) (any, bool) {
		f, ok := numberOf(a, vars)
		return f + float64(n), ok
	}}
}

func size(a expression) expression {
	return expression{"size(" + a.text + ")", func(vars object) (any, bool) {
		v, ok := a.mean(vars)
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

func larger(a, b expression) expression {
	return expression{a.text + " > " + b.text, func(vars object) (any, bool) {
		f, ok := numberOf(a, vars)
		g, ok2 := numberOf(b, vars)
		return f > g, ok && ok2
	}}
}

func numberOf(e expression, vars object) (float64, bool) {
	v, ok := e.mean(vars)
	f, isNumber := v.(float64)
	return f, ok && isNumber
}

// equal compares with a literal that is no list and no object.
func equal(a, b expression) expression {
	return expression{a.text + " == " + b.text, func(vars object) (any, bool) {
		v, ok := a.mean(vars)
		w, _ := b.mean(vars)
		switch v.(type) {
		case object, []any:
			return false, ok
		}
		return v == w, ok
	}}
}

func not(a expression) expression {
	return expression{"!(" + a.text + ")", func(vars object) (any, bool) {
		v, ok := a.mean(vars)
		yes, _ := v.(bool)
		return !yes, ok
	}}
}

// either is || or &&: one side that decides is enough, whatever the other one is.
func either(a, b expression, decides bool) expression {
	op := " && "
	if decides {
		op = " || "
	}
	return expression{"(" + a.text + ")" + op + "(" + b.text + ")", func(vars object) (any, bool) {
		v, ok := a.mean(vars)
		w, ok2 := b.mean(vars)
		if ok && v == decides || ok2 && w == decides {
			return decides, true
		}
		return !decides, ok && ok2
	}}
}

func choose(when, then, or expression) expression {
	return expression{fmt.Sprintf("%s ? dyn(%s) : dyn(%s)", group(when), then.text, or.text), func(vars object) (any, bool) {
		v, ok := when.mean(vars)
		switch {
		case !ok:
			return nil, false
		case v == true:
			return then.mean(vars)
		}
		return or.mean(vars)
	}}
}

func group(e expression) string { return "(" + e.text + ")" }

// together is an object of a value and a list.
func together(a, b expression) expression {
	return expression{fmt.Sprintf(`{"n": %s, "list": [dyn(%s), dyn(1)]}`, a.text, b.text), func(vars object) (any, bool) {
		v, ok := a.mean(vars)
		w, ok2 := b.mean(vars)
		return object{"n": v, "list": []any{w, 1.0}}, ok && ok2
	}}
}

package expr

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var celVars = []string{"params", "input", "shared", "deps", "item", "index"}

func celParams(text string) Vars {
	return func(name string) (Source, bool) { return Raw(json.RawMessage(text)), name == "params" }
}

var celLanguage = NewLanguage(celVars...)

func evalCEL(t testing.TB, source string, vars Vars) (string, error) {
	c, err := celLanguage.Compile(source)
	require.NoError(t, err, source)
	out, err := c.Eval(vars)
	return string(out), err
}

func TestCELGivesJSON(t *testing.T) {
	vars := celParams(`{"n":5,"f":5.5,"w":5.0,"big":9223372036854775807,"huge":123456789012345678901234567890,"s":"é\u0041\"",
		"list":[3,1,2],"o":{"z":1,"a":{"x":1e2}},"nil":null,"t":true,"e":[],"eo":{},"a b":1,"words":["b","a"],"dup":1,"dup":2}`)
	for source, want := range map[string]string{
		`params.n > 4`:                            `true`,
		`params.n + 1`:                            `6`,
		`params.big - 1`:                          `9223372036854775806`,
		`params.big`:                              `9223372036854775807`,
		`params.huge`:                             `123456789012345678901234567890`,
		`[params.huge] == [params.huge]`:          `true`,
		`params.n * 1.5`:                          `7.5`,
		`params.f * 2`:                            `11`,
		`params.f + params.n`:                     `10.5`,
		`1 + 1.5`:                                 `2.5`,
		`params.n / 2`:                            `2`,
		`params.n / 2.0`:                          `2.5`,
		`params.w / 2`:                            `2.5`,
		`params.w == params.n`:                    `true`,
		`params.n < params.f`:                     `true`,
		`params.s`:                                `"éA\""`,
		`params.s + "!"`:                          `"éA\"!"`,
		`params.o`:                                `{"z":1,"a":{"x":1e2}}`,
		`params.o.a.x == 100`:                     `true`,
		`params.o.map(k, k)`:                      `["z","a"]`,
		`{"b": 1, "a": [params.t, null]}`:         `{"a":[true,null],"b":1}`,
		`{"b": 1, "a": 2, "c": 3}.map(k, k)`:      `["a","b","c"]`,
		`{2: "x", 10: "y"}`:                       `{"10":"y","2":"x"}`,
		`params.list.map(x, x * 2)`:               `[6,2,4]`,
		`params.list.filter(x, x > 1)`:            `[3,2]`,
		`params.list.all(x, x > 0)`:               `true`,
		`params.list.exists_one(x, x == 1)`:       `true`,
		`params.list[0]`:                          `3`,
		`params["a b"]`:                           `1`,
		`params.dup`:                              `2`,
		"params.`a b`":                            `1`,
		`size(params.list) + size(params.o)`:      `5`,
		`params.nil == null`:                      `true`,
		`has(params.n)`:                           `true`,
		`has(params.none)`:                        `false`,
		`has(params.o.a.x) && has(params.o.none)`: `false`,
		`has(params.none) ? params.none : 7`:      `7`,
		`"n" in params`:                           `true`,
		`3 in params.list`:                        `true`,
		`3.0 in params.list`:                      `true`,
		`params.o == {"a": {"x": 100}, "z": 1}`:   `true`,
		`params.e == [] && params.eo == {}`:       `true`,
		`params == params`:                        `true`,
		`b"ab"`:                                   `"YWI="`,
		`type(params.n) == int`:                   `true`,
		`string(params.n) + string(params.f)`:     `"55.5"`,
		`int("12") + 1`:                           `13`,
		`params.s.matches("^é")`:                  `true`,
		`"a,b".split(",").join("-")`:              `"a-b"`,
		`params.words.sort().join()`:              `"ab"`,
		`params.list.sort()`:                      `[1,2,3]`,
		`params.list.sortBy(x, -x)`:               `[3,2,1]`,
		`[1, 1.0, 2].distinct()`:                  `[1,2]`,
		`lists.range(3)`:                          `[0,1,2]`,
		`[[1], [2]].flatten()`:                    `[1,2]`,
		`"Abc".lowerAscii().replace("b", "xx")`:   `"axxc"`,
		`"%s is %d".format(["x", params.n])`:      `"x is 5"`,
		`math.greatest(params.n, 7)`:              `7`,
		`sets.contains(params.list, [1, 2])`:      `true`,
		`sets.equivalent([1, 2], [2, 1, 1])`:      `true`,
		`sets.intersects(params.list, [9])`:       `false`,
		`base64.encode(b"ab")`:                    `"YWI="`,
		`1e300 * 1e10`:                            `1e+310`[:0],
		`-0.5e-7`:                                 `-5e-08`,
		`1u`:                                      `1`,
	} {
		got, err := evalCEL(t, source, vars)
		if want == "" {
			require.Error(t, err, source)
			continue
		}
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
		require.True(t, Valid([]byte(got)), source)
	}
}

func TestCELEvaluationErrorsNameTheCause(t *testing.T) {
	vars := celParams(`{"n":5,"s":"x","list":[1],"nil":null}`)
	for source, want := range map[string]string{
		`params.none > 1`:                `params.none is missing`,
		`params.nil.x`:                   `params.nil.x is missing`,
		`params.n + params.s`:            `no such overload`,
		`params.n > params.s`:            `no such overload`,
		`params.list[1]`:                 `params.list[1] is missing`,
		`params.n / 0`:                   `division by zero`,
		`item.x`:                         `no such attribute(s): item`,
		`double("NaN")`:                  `the result is NaN, which JSON does not have`,
		`type(params)`:                   `which JSON does not have`,
		`"x".charAt(5)`:                  `index out of range: 5`,
		`params.n.matches("x")`:          `no such overload`,
		`9223372036854775807 + params.n`: `overflow`,
	} {
		_, err := evalCEL(t, source, vars)
		require.ErrorContains(t, err, want, source)
		require.ErrorContains(t, err, fmt.Sprintf("expression %q: ", source))
	}
}

func TestCELCompileErrorsHaveAPosition(t *testing.T) {
	for source, want := range map[string]string{
		``:                                  `the expression is empty`,
		`params.x >`:                        `character 11: the expression ends too early`,
		`parms.x > 1`:                       `unknown name parms: an expression sees `,
		"params.x >\n  nothing.y":           `character 14: unknown name nothing`,
		`params.x.foo()`:                    `character 13: there is no function foo`,
		`1 + "x"`:                           `character 3: + cannot be applied to (int, string)`,
		`timestamp("2026-01-01T00:00:00Z")`: `character 10: there is no function timestamp`,
		`params.s.matches(params.p)`:        `write the regular expression here as a literal text`,
		`params.s.matches("(")`:             `character 18: error parsing regexp: missing closing )`,
		`params.s.matches("x{1000}")`:       `the regular expression has 1002 states, more than 200`,
		strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200): `recursion limit`,
		strings.Repeat("1+", 1_100) + "1":                         `size exceeds limit`,
		`[1]` + strings.Repeat(`.map(x, x)`, 17):                  `the expression has 17 macros`,
		"[1" + strings.Repeat(",1", 600) + "]":                    `limit`,
		"1" + strings.Repeat("+1", 900):                           `recursion`,
	} {
		_, err := celLanguage.Compile(source)
		require.ErrorContains(t, err, want, source)
		require.IsType(t, Faults{}, err)
	}
}

func TestCELKnowsOnlyItsVariables(t *testing.T) {
	_, err := CompileCEL(`item > 1`, "params")
	require.ErrorContains(t, err, "unknown name item: an expression sees params")
}

func TestCELBool(t *testing.T) {
	c, err := celLanguage.Compile(`params.flag`)
	require.NoError(t, err)
	require.True(t, c.MayBeBool())
	yes, err := c.Bool(celParams(`{"flag":true}`))
	require.NoError(t, err)
	require.True(t, yes)
	_, err = c.Bool(celParams(`{"flag":"yes"}`))
	require.EqualError(t, err, `expression "params.flag": it gives a text, not true or false`)

	c, err = celLanguage.Compile(`1 + 1`)
	require.NoError(t, err)
	require.False(t, c.MayBeBool())
	require.Equal(t, "int", c.Type())
}

func TestCELReadsOnlyRequiredValues(t *testing.T) {
	var asked []string
	env := Env{
		Params: json.RawMessage(`1`),
		Input:  json.RawMessage(`2`),
		Shared: func(key string) (json.RawMessage, bool) {
			asked = append(asked, key)
			return json.RawMessage(`{"n":1}`), key == "a"
		},
		SharedAll: func() json.RawMessage { asked = append(asked, "all"); return json.RawMessage(`{"a":{"n":1},"b":2}`) },
	}
	got, err := evalCEL(t, `shared.a.n + shared.a.n + params + input == 5 && !has(shared.none) && !has(shared.none)`, env.Var)
	require.NoError(t, err)
	require.Equal(t, "true", got)
	require.Equal(t, []string{"a", "none"}, asked)

	got, err = evalCEL(t, `shared.map(k, k)`, env.Var)
	require.NoError(t, err)
	require.Equal(t, `["a","b"]`, got)
}

// Hostile expressions are stopped soon, and always at the same point.
func TestCELIsBounded(t *testing.T) {
	vars := hostileParams(2_000)
	for name, source := range map[string]string{
		"quadratic":              `params.l.all(a, params.l.all(b, a + b >= 0))`,
		"without calls":          `params.l.exists_one(a, params.l.exists_one(b, params.l.exists_one(c, false)))`,
		"constant":               `params.l.all(a, params.l.all(b, true))`,
		"doubled lists":          `[[1]]` + strings.Repeat(`.map(x, x + x + x + x)`, 10),
		"nested lists":           `[[1]]` + strings.Repeat(`.map(x, [x, x, x, x])`, 10),
		"nested lists, compared": `[[1]]` + strings.Repeat(`.map(x, [x, x, x, x])`, 10) + `.map(x, x == x)`,
		"nested objects":         `[{"a": 1}]` + strings.Repeat(`.map(x, {"a": x, "b": x, "c": x, "d": x})`, 10),
		"doubled texts":          `["aaaaaaaa"]` + strings.Repeat(`.map(x, x + x + x + x)`, 10),
		"replaced texts":         `params.s.replace("a", params.s)`,
		"replaced by nothing":    `params.s.replace("", params.s)`,
		"joined texts":           `params.l.map(x, "a").join(params.s)`,
		"searched texts":         `(params.s + "b").indexOf(params.s.substring(1) + "c")`,
		"distinct":               `params.l.distinct()`,
		"sets":                   `sets.contains(params.l, params.l)`,
		"many ranges":            `lists.range(1000).map(x, lists.range(100000))`,
		"many comparisons":       `params.l.all(x, params.doc == params.doc)`,
		"many searches":          `params.l.all(x, -1 in params.l ? false : true)`,
		"many matches":           `params.l.all(x, params.s.matches("(a|b|ab)*c") ? false : true)`,
		"many sizes":             `params.l.all(x, size(params.s) > 1)`,
		"large formats":          `"%s%s%s%s%s%s%s%s%s%s".format(lists.range(10).map(x, params.doc))`,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := celLanguage.Compile(source)
			require.NoError(t, err)
			c.budget = 50_000
			_, err = c.Eval(vars)
			require.ErrorContains(t, err, tooMuch)
		})
	}
}

func TestCELRejectsDeepValues(t *testing.T) {
	vars := celParams(`{"deep":` + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000) + `}`)
	_, err := evalCEL(t, `params.deep == params.deep`, vars)
	require.ErrorContains(t, err, "the value is nested deeper than 100")
	got, err := evalCEL(t, `size(params.deep)`, vars)
	require.NoError(t, err)
	require.Equal(t, "1", got)
	_, err = evalCEL(t, `lists.range(100000000)`, vars)
	require.ErrorContains(t, err, "exceeds maximum allowed")
}

// hostileParams has a long list, a long text and a large document.
func hostileParams(size int) Vars {
	var list strings.Builder
	for i := range size {
		fmt.Fprintf(&list, ",%d", i)
	}
	return celParams(`{"l":[` + list.String()[1:] + `],"s":"` + strings.Repeat("a",
		10*size) + `","doc":{"x":[` + strings.Repeat(`{"k":["v"]},`, size) + `1]}}`)
}

func TestCELServesGoroutines(t *testing.T) {
	c, err := celLanguage.Compile(`params.list.map(x, x + params.n).filter(x, x > 2)`)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 200 {
				got, err := c.Eval(celParams(fmt.Sprintf(`{"n":%d,"list":[1,2]}`, n+2)))
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("[%d,%d]", n+3, n+4), string(got))
			}
		})
	}
	wg.Wait()
}

func BenchmarkNewLanguage(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewLanguage(celVars...)
	}
}

func BenchmarkCELCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, err := celLanguage.Compile(`params.total > 100 && params.customer.name == "Ada" && "c" in params.customer.tags`)
		require.NoError(b, err)
	}
}

func BenchmarkCELEval(b *testing.B) {
	for name, source := range map[string]string{
		"comparison": `params.total > 100`,
		"three":      `params.total > 100 && params.customer.name == "Ada" && "c" in params.customer.tags`,
		"macro":      `params.items.filter(i, i.qty > 5).map(i, i.sku)`,
		"passed on":  `params.items`,
	} {
		c, err := celLanguage.Compile(source)
		require.NoError(b, err)
		vars := celParams(string(order))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := c.Eval(vars)
				require.NoError(b, err)
			}
		})
	}
}

// The longest known evaluation.
func BenchmarkCELAtWorst(b *testing.B) {
	vars := hostileParams(80_000)
	for name, source := range map[string]string{
		"comparisons": `params.l.all(x, params.doc == params.doc)`,
		"lists":       `[[1]]` + strings.Repeat(`.map(x, x + x + x + x)`, 12),
		"objects":     `[{"a": 1}]` + strings.Repeat(`.map(x, {"a": x, "b": x, "c": x, "d": x})`, 12),
		"loops":       `params.l.all(a, params.l.all(b, true))`,
		"matches":     `params.l.all(x, params.s.matches("(a|b|ab)*c") ? false : true)`,
	} {
		c, err := celLanguage.Compile(source)
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := c.Eval(vars)
				require.Error(b, err)
			}
		})
	}
}

func FuzzCEL(f *testing.F) {
	for _, source := range []string{`params.a + 1`,
		`params.l.map(x, {"a": x, params.s: [x, null]}).filter(y, has(y.a))`, `params.s.matches("x{3,5}")`,
		`params.l.sortBy(x, -x)[0] / 2.0`, `"%s %d".format([params.s, 1u])`,
		`b"\x00" + bytes(params.s)`, `[1,2,3].all(x, x > 0) ? params : {1: true}`} {
		f.Add(source, `{"a":5,"l":[1,2.5,"x",[null]],"s":"é"}`)
	}
	f.Fuzz(func(t *testing.T, source, params string) {
		if len(source) > 1_000 || !Valid([]byte(params)) {
			return
		}
		c, err := celLanguage.Compile(source)
		if err != nil {
			require.NotContains(t, err.Error(), "cannot be compiled", source)
			return
		}
		c.budget = 100_000
		got, err := c.Eval(celParams(params))
		if err != nil {
			require.NotContains(t, err.Error(), "internal error", source)
			return
		}
		require.True(t, Valid(got), "%s gives %s", source, got)
		again, err := c.Eval(celParams(params))
		require.NoError(t, err)
		require.Equal(t, string(got), string(again), source)
	})
}

package expr

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var someValues = []string{
	``, `null`, `{"a":{"b":[0,1,{"c":"x"}]},"a":{"b":[[5]]}}`, `{"\u0061":[1,2],"n":5,"s":"5.0"}`, ` [ {"a" : "\ud83d\ude00\\"} , 1e400 ] `,
	`{"s":"a\nb","t":"NaN","x":1_0}`, `{"a":tru`, `"\`, `[[[[`, `{"a":1,}`, "{\"\xff\":\"\xff\"}", `-`, `01`, `{"a"`, `"a"b"`, `[1]]`,
	`"\ud800"`, `{"\udc00":1,"\udc00":2}`, "\"\xff\"", "\ufeff1", " 1 \n", "1 2", `1e`, `-0.5E+3`, `"\u00g0"`, "\"\x01\"", `nul`, `truee`,
}

func FuzzRaw(f *testing.F) {
	for _, v := range someValues {
		f.Add([]byte(v), []byte(`{"a":1}`), "a", 0)
	}
	f.Fuzz(func(t *testing.T, v, over []byte, key string, i int) {
		require.Equal(t, json.Valid(v), Valid(v), "%q", v)
		if Valid(v) {
			requireParts(t, v)
		}
		walkAll(v, key, i)
		merged := Merge(v, over)
		if Valid(v) && Valid(over) {
			require.True(t, Valid(merged), "%q", merged)
		}
		quoted, ok := String(Quote(key))
		require.True(t, ok)
		require.Equal(t, string([]rune(key)), quoted)
		if c := Compact(v); c != nil {
			require.Equal(t, decode(v), decode(c))
		}
	})
}

// walkAll reads every part of any bytes; it only has to return.
func walkAll(v []byte, key string, i int) {
	KindOf(v)
	String(v)
	Number(v)
	Index(v, i)
	Field(v, key)
	if members, ok := Members(v); ok {
		for _, m := range members {
			Field(v, m.Key)
		}
	}
	if elements, ok := Elements(v); ok {
		for _, e := range elements {
			KindOf(e)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, v := range someValues {
		for _, path := range []string{"", "a.b[2].c", "a[0][1]", "..n.", "a[", "[0]", "a.[1]", "$params.a[0]"} {
			f.Add([]byte(v), path)
		}
	}
	f.Fuzz(func(t *testing.T, v []byte, path string) {
		got := Path(v, path)
		env := &Env{Loose: true, Params: v, Input: v, SharedAll: func() json.RawMessage { return v }}
		env.Shared = func(key string) (json.RawMessage, bool) { return Field(v, key) }
		for _, prefix := range []string{"$params.", "$shared.", "$input", "$input."} {
			require.Equal(t, string(got), string(ParseRef(prefix+path).Resolve(env)))
		}
		if want, ok := oracle(v); ok && strings.Count(path, ".") < maxSegments {
			found, ok := oracle(got)
			require.True(t, ok)
			require.Equal(t, oraclePath(want, path), found)
		}
	})
}

var someConds = []string{
	`{"and":[{"eq":["$params.n","5"]},{"not":"$params.s"},true]}`, `{"in":["$params.s",["5",5]]}`, `{"contains":["$input.s","5"]}`,
	`{"lt":["$shared.a",{"b":[1]}],"ge":["NaN",1]}`, `{"exists":"$shared."}`, `{"eq":[1]}`,
	`{"or":[{},null,[1]]}`, `{"in":["$params.a[1]","$params.a"]}`,
}

func FuzzCond(f *testing.F) {
	for _, c := range someConds {
		for _, v := range someValues {
			f.Add([]byte(c), []byte(v))
		}
	}
	f.Fuzz(func(t *testing.T, raw, v []byte) { requireCond(t, raw, v) })
}

// requireCond compares an expression with the oracle, if the oracle can read both.
func requireCond(t require.TestingT, raw, v []byte) {
	env := &Env{Loose: true, Params: v, Input: v, SharedAll: func() json.RawMessage { return v }}
	cond, problems := ParseCond(raw)
	got := holdsIn(t, cond, env)
	if strict, err := cond.Eval(env); err == nil {
		require.Equal(t, got, strict, "nothing is missing: %s over %s", raw, v)
	} else {
		require.ErrorAs(t, err, new(*MissingError))
	}
	for _, p := range problems {
		if strings.Contains(p.Msg, "deeper") || strings.Contains(p.Msg, "more than") {
			return
		}
	}
	decoded, ok := oracle(raw)
	if value, readable := oracle(v); ok && readable {
		require.Equal(t, oracleEval(decoded, value), got, "%s over %s", raw, v)
	}
}

func TestCondAgreesWithTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requireCond(t, []byte(condText(t, 3)), []byte(objectText(t, 2)))
	})
}

// condText draws expressions that mostly have the right shape.
func condText(t *rapid.T, depth int) string {
	if depth == 0 {
		return operandText(t)
	}
	name := rapid.SampledFrom([]string{"and", "or", "not", "eq", "ne", "gt", "lt", "ge", "le",
		"exists", "in", "contains", "nand"}).Draw(t, "operator")
	var operand string
	switch name {
	case "and", "or":
		operand = "[" + strings.Join(list(t, func() string { return condText(t, depth-1) }), ",") + "]"
	case "not":
		operand = condText(t, depth-1)
	case "exists":
		operand = operandText(t)
	default:
		operand = "[" + operandText(t) + "," + operandText(t) + "]"
	}
	return `{"` + name + `":` + operand + "}"
}

func operandText(t *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(t, "operand") {
	case 0:
		return text(t, 1)
	case 1:
		return string(Quote(rapid.SampledFrom([]string{"5", "5.0", "NaN", "1e+06", "true", "null",
			"", "abc", "1_0", "0x10", "$params"}).Draw(t, "literal")))
	}
	root := rapid.SampledFrom([]string{"$params.", "$shared.", "$input", "$input."}).Draw(t, "root")
	path := rapid.SampledFrom([]string{"a", "b", "ab", "a.b", "b.a", "a[0]", "b[1]", "5", "", "é"}).Draw(t, "path")
	return string(Quote(root + path))
}

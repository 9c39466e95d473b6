package expr

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestKindOf(t *testing.T) {
	for text, want := range map[string]Kind{
		"": KindNull, " \n": KindNull, "null": KindNull, " null ": KindNull,
		"true": KindBool, "false": KindBool, "0": KindNumber, "-1.5": KindNumber,
		`""`: KindString, `"null"`: KindString, "[]": KindArray, "\t{}": KindObject, "?": KindNull,
	} {
		require.Equal(t, want, KindOf(json.RawMessage(text)), "%q", text)
	}
}

func TestField(t *testing.T) {
	for name, tt := range map[string]struct {
		obj, key, want string
		ok             bool
	}{
		"a value is returned as written":          {`{"a": 9007199254740993 , "b":2}`, "a", "9007199254740993", true},
		"key order in a value survives":           {`{"a":{"z":1, "b":2}}`, "a", `{"z":1, "b":2}`, true},
		"the last of equal keys counts":           {`{"a":1,"a":2}`, "a", "2", true},
		"an escaped key is the same key":          {`{"\u0061":1}`, "a", "1", true},
		"an escaped and a plain key are equal":    {`{"a":1,"\u0061":2}`, "a", "2", true},
		"a wanted backslash is not an escape":     {`{"\u0061":1}`, `\u0061`, "", false},
		"bytes that are not UTF-8 mean U+FFFD":    {"{\"\xff\":1}", "\ufffd", "1", true},
		"bytes that are not UTF-8 do not match":   {"{\"\xff\":1}", "\xff", "", false},
		"brackets and quotes in strings are text": {`{"x":"}\"]{","a":1}`, "a", "1", true},
		"a backslash before the closing quote":    {`{"x":"\\","a":1}`, "a", "1", true},
		"the empty key":                           {`{"":1}`, "", "1", true},
		"a nested key is not seen":                {`{"x":{"a":1}}`, "a", "", false},
		"null is found":                           {`{"a":null}`, "a", "null", true},
		"an array has no keys":                    {`["a"]`, "a", "", false},
		"nothing has no keys":                     {"", "a", "", false},
		"a broken object has no keys":             {`{"a":1`, "a", "", false},
		"something behind the object":             {`{"a":1}}`, "a", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Field(json.RawMessage(tt.obj), tt.key)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want, string(got))
		})
	}
}

func TestIndex(t *testing.T) {
	arr := json.RawMessage(` [ 1 , [2,3], "x" ] `)
	for i, want := range []string{"1", "[2,3]", `"x"`} {
		got, ok := Index(arr, i)
		require.True(t, ok)
		require.Equal(t, want, string(got))
	}
	for _, i := range []int{-1, 3} {
		_, ok := Index(arr, i)
		require.False(t, ok, "index %d", i)
	}
	_, ok := Index(json.RawMessage(`{"0":1}`), 0)
	require.False(t, ok)
}

func TestPartsCannotGrowIntoTheirNeighbors(t *testing.T) {
	arr := json.RawMessage(`[1,2]`)
	first, _ := Index(arr, 0)
	_ = append(first, "999"...)
	require.Equal(t, "[1,2]", string(arr))
	require.Equal(t, "null", string(append(Path(nil, "a"), '!')[:4]))
	require.Equal(t, "null", string(Path(nil, "a")))
}

func TestMembersKeepOrderAndRepetitions(t *testing.T) {
	got, ok := Members(json.RawMessage(`{ "z" : 1, "\u0061":[2], "z":3 }`))
	require.True(t, ok)
	require.Equal(t, []Member{{"z", json.RawMessage("1")}, {"a", json.RawMessage("[2]")}, {"z", json.RawMessage("3")}}, got)

	got, ok = Members(json.RawMessage(`{}`))
	require.True(t, ok)
	require.NotNil(t, got)
	require.Empty(t, got)
	_, ok = Members(json.RawMessage(`[]`))
	require.False(t, ok)
}

func TestMerge(t *testing.T) {
	for name, tt := range map[string]struct{ base, over, want string }{
		"over wins, base keeps its places": {`{"b":1,"a":2}`, `{"c":3,"b":4}`, `{"b":4,"a":2,"c":3}`},
		"keys are merged at the top only":  {`{"a":{"x":1}}`, `{"a":{"y":2}}`, `{"a":{"y":2}}`},
		"the last of equal keys counts":    {`{"a":1,"a":2}`, `{"b":3,"b":4}`, `{"a":2,"b":4}`},
		"null in over wins":                {`{"a":1}`, `{"a":null}`, `{"a":null}`},
		"an empty over changes nothing":    {`{ "a":1 }`, `{ }`, `{ "a":1 }`},
		"an empty base changes nothing":    {`{}`, `{ "a":1 }`, `{ "a":1 }`},
		"no object over":                   {`{ "a":1 }`, `[1]`, `{ "a":1 }`},
		"no object under":                  {`null`, `{ "a":1 }`, `{ "a":1 }`},
		"nothing under, nothing over":      {``, ``, `{}`},
		"both are no objects":              {`1`, `"x"`, `{}`},
		"large numbers survive":            {`{"a":12345678901234567890}`, `{"b":1}`, `{"a":12345678901234567890,"b":1}`},
		"odd keys":                         {`{"\u0061\"":1}`, `{"<":2}`, `{"a\"":1,"<":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, string(Merge(json.RawMessage(tt.base), json.RawMessage(tt.over))))
		})
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, " -1.5e2 ": -150, "9007199254740993": 9007199254740992} {
		got, ok := Number(json.RawMessage(text))
		require.True(t, ok, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "-", "01", "1.", ".5", "1e", "1_0", "0x1p4", "Inf", "NaN", "1e400", `"5"`, "true", "null", "1 2"} {
		_, ok := Number(json.RawMessage(text))
		require.False(t, ok, text)
	}
}

func TestQuoteLeavesHTMLAlone(t *testing.T) {
	require.Equal(t, `"<a href=\"x\">&\\\n\u0001\ufffd é😀\u2028</a>"`, string(Quote("<a href=\"x\">&\\\n\x01\xff é😀\u2028</a>")))
}

func TestCompact(t *testing.T) {
	require.Equal(t, `{"a":[1,"x y"]}`, string(Compact(json.RawMessage(" { \"a\" : [ 1,\n\"x y\" ] } "))))
	require.Nil(t, Compact(json.RawMessage(`{"a"`)))
	require.Nil(t, Compact(nil))
}

func TestDeepNestingIsWalkedNotRecursed(t *testing.T) {
	const depth = 9_000
	deep := json.RawMessage(strings.Repeat(`{"a":[`, depth/2) + strings.Repeat(`]}`, depth/2))
	require.True(t, Valid(deep))
	got, ok := Field(deep, "a")
	require.True(t, ok)
	require.Len(t, got, len(deep)-len(`{"a":}`))
	env := &Env{Params: Merge(json.RawMessage(`{"b":1}`), deep)}
	cond, problems := ParseCond(json.RawMessage(`{"eq":["$params.a","$params.a"]}`))
	require.Empty(t, problems)
	require.True(t, holdsIn(t, cond, env))
	require.False(t, Valid([]byte(strings.Repeat("[", 10_001)+strings.Repeat("]", 10_001))))
	_, ok = Elements(json.RawMessage(strings.Repeat("[", 1_000_000)))
	require.False(t, ok)
}

func TestPartsAgreeWithDecoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := json.RawMessage(text(t, 3))
		requireParts(t, v)
	})
}

// requireParts compares every part of valid JSON with what encoding/json decodes.
func requireParts(t require.TestingT, v json.RawMessage) {
	switch want := decode(v).(type) {
	case nil:
		require.Equal(t, KindNull, KindOf(v))
	case bool:
		require.Equal(t, KindBool, KindOf(v))
	case json.Number:
		require.Equal(t, KindNumber, KindOf(v))
		var f float64
		err := json.Unmarshal(v, &f)
		got, ok := Number(v)
		require.Equal(t, err == nil, ok)
		require.True(t, !ok || got == f)
	case string:
		require.Equal(t, KindString, KindOf(v))
		got, ok := String(v)
		require.True(t, ok)
		require.Equal(t, want, got)
	case []any:
		requireElements(t, v, want)
	case map[string]any:
		requireMembers(t, v, want)
	}
}

func requireElements(t require.TestingT, v json.RawMessage, want []any) {
	require.Equal(t, KindArray, KindOf(v))
	got, ok := Elements(v)
	require.True(t, ok)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], decode(got[i]))
		at, ok := Index(v, i)
		require.True(t, ok)
		require.Equal(t, got[i], at)
		requireParts(t, at)
	}
	_, ok = Index(v, len(want))
	require.False(t, ok)
}

func requireMembers(t require.TestingT, v json.RawMessage, want map[string]any) {
	require.Equal(t, KindObject, KindOf(v))
	got, ok := Members(v)
	require.True(t, ok)
	last := map[string]any{}
	for _, m := range got {
		last[m.Key] = decode(m.Value)
		requireParts(t, m.Value)
	}
	require.Equal(t, want, last)
	for _, key := range slices.Concat(slices.Collect(maps.Keys(want)), someKeys) {
		field, ok := Field(v, key)
		value, present := want[key]
		require.Equal(t, present, ok, "key %q in %s", key, v)
		if ok {
			require.Equal(t, value, decode(field))
		}
	}
}

func TestMergeAgreesWithDecoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() json.RawMessage {
			if rapid.IntRange(0, 3).Draw(t, "any kind") == 0 {
				return json.RawMessage(text(t, 1))
			}
			return json.RawMessage(objectText(t, 2))
		}
		base, over := draw(), draw()
		want := map[string]any{}
		maps.Copy(want, decodeObject(base))
		maps.Copy(want, decodeObject(over))
		got := Merge(base, over)
		require.True(t, Valid(got))
		require.Equal(t, want, decode(got))
	})
}

func TestSetField(t *testing.T) {
	for name, tt := range map[string]struct{ object, key, want string }{
		"a new key is the last":       {`{"b":1}`, "a", `{"b":1,"a":7}`},
		"a known key keeps its place": {` { "a" : [1] , "b":2} `, "a", ` { "a" : 7 , "b":2} `},
		"the last of equal keys":      {`{"a":1,"a":2}`, "a", `{"a":1,"a":7}`},
		"a key with an escape":        {`{"\u0061":1}`, "a", `{"\u0061":7}`},
		"an odd key":                  {`{"b":1}`, "a\"", `{"b":1,"a\"":7}`},
		"an empty object":             {` {} `, "a", `{"a":7}`},
		"no object":                   {`[1]`, "a", `{"a":7}`},
		"nothing":                     {``, "a", `{"a":7}`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, string(SetField(json.RawMessage(tt.object), tt.key, json.RawMessage(`7`))))
		})
	}
}

func TestSetFieldAgreesWithDecoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object, key := json.RawMessage(objectText(t, 2)), rapid.SampledFrom([]string{"a", "b", "\u00e9", ""}).Draw(t, "key")
		want := map[string]any{}
		maps.Copy(want, decodeObject(object))
		want[key] = decode(json.RawMessage(`[7]`))
		got := SetField(object, key, json.RawMessage(`[7]`))
		require.True(t, Valid(got))
		require.Equal(t, want, decode(got))
	})
}

func TestQuoteAgreesWithEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "s")
		var out strings.Builder
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(s))
		require.Equal(t, strings.TrimSuffix(out.String(), "\n"), string(Quote(s)))
		back, ok := String(Quote(s))
		require.True(t, ok)
		require.Equal(t, string([]rune(s)), back)
	})
}

package expr_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/expr"
)

func TestReadsListsThePartsOfVariables(t *testing.T) {
	for source, want := range map[string][][]string{
		"params.a.b > 1":                     {{"params", "a", "b"}},
		"has(params.a) && params['b c'] > 1": {{"params", "a"}, {"params", "b c"}},
		"params.list[0].x == params[key]":    {{"params", "list"}},
		"params.list.exists(i, i.price > 1)": {{"params", "list"}},
		"size(params) > 1":                   nil,
	} {
		c, err := expr.CompileCEL(source, "params", "key")
		require.NoError(t, err)
		var got [][]string
		for _, read := range c.Reads() {
			if read.Path[0] == "params" {
				got = append(got, read.Path)
			}
		}
		require.ElementsMatch(t, want, got, source)
	}
}

func TestReadsHavePositions(t *testing.T) {
	c, err := expr.CompileCEL("'ü' == params.a &&\n has( params.b['d'].c ) && params.list.exists(i, i.price > params.least)", "params")
	require.NoError(t, err)
	got := map[string]int{}
	for _, read := range c.Reads() {
		got[strings.Join(read.Path, ".")] = read.At
	}
	require.Subset(t, got, map[string]int{"params.a": 7, "params.b.d.c": 25, "params.list": 46, "params.least": 78})
}

func TestIntoParamsReturnsTheKeysOfAReference(t *testing.T) {
	path, ok := expr.ParseRef("$params.a[2].b").IntoParams()
	require.True(t, ok)
	require.Equal(t, []string{"a", "[2]", "b"}, path)
	for _, text := range []string{"$shared.a", "$params.a[x]", "a", "$params"} {
		_, ok = expr.ParseRef(text).IntoParams()
		require.False(t, ok, text)
	}
	keys, ok := expr.PathKeys("a.b[0]")
	require.True(t, ok)
	require.Equal(t, []string{"a", "b", "[0]"}, keys)
}

func TestWholeNumbersAreWholeHoweverTheyAreWritten(t *testing.T) {
	for _, v := range []string{"0", "-1", "2.0", "20e-1", "1e2000000", "-0.0", "12345678901234567890"} {
		require.True(t, expr.Whole(json.RawMessage(v)), v)
	}
	for _, v := range []string{"0.5", "-1e-1", `"1"`, "null", ""} {
		require.False(t, expr.Whole(json.RawMessage(v)), v)
	}
}

func TestEqualValuesHaveTheSameCanonicalBytes(t *testing.T) {
	canonical := func(v string) string { return string(expr.AppendCanonical(nil, json.RawMessage(v))) }
	require.Equal(t, canonical(`{"a":1.0,"b":["\u0061",null]}`), canonical(` { "b" : [ "a" , null ], "a" : 1 } `))
	for _, v := range []string{`{"a":1,"b":["b",null]}`, `{"a":"1","b":["a",null]}`,
		`{"a":1,"b":["a",null,null]}`, `{"a":1,"b":[["a"],null]}`} {
		require.NotEqual(t, canonical(`{"a":1,"b":["a",null]}`), canonical(v))
	}
}

package expr

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAComparisonWithAMissingValueFails(t *testing.T) {
	shared := map[string]json.RawMessage{"o": json.RawMessage(`{"x":1}`)}
	env := &Env{
		Params: json.RawMessage(`{"n":5,"nil":null,"list":[1],"o":{"a":{"b":1}},"no":false}`),
		Input:  json.RawMessage(`{"i":1}`),
		Shared: func(key string) (json.RawMessage, bool) { v, ok := shared[key]; return v, ok },
	}
	for text, path := range map[string]string{
		`{"gt":["$params.amount",10]}`:                            "$params.amount",
		`{"gt":[10,"$params.amount"]}`:                            "$params.amount",
		`{"eq":["$params.amount",null]}`:                          "$params.amount",
		`{"ne":["$params.o.a.x.y",1]}`:                            "$params.o.a.x",
		`{"eq":["$params.n.x",1]}`:                                "$params.n.x",
		`{"eq":["$params.nil.x",1]}`:                              "$params.nil.x",
		`{"eq":["$params.list[1]",1]}`:                            "$params.list[1]",
		`{"eq":["$params.list[1].x",1]}`:                          "$params.list[1]",
		`{"eq":["$params.list[x]",1]}`:                            "$params.list[x]",
		`{"in":["$input.j",[1]]}`:                                 "$input.j",
		`{"contains":["$shared.list",1]}`:                         "$shared.list",
		`{"eq":["$shared.o.y.z",1]}`:                              "$shared.o.y",
		`{"not":"$params.flag"}`:                                  "$params.flag",
		`{"and":[{"eq":[1,1]},"$params.flag"]}`:                   "$params.flag",
		`{"or":[{"gt":["$params.x",1]},{"eq":[1,1]}]}`:            "$params.x",
		`{"not":{"and":[{"gt":["$params.x",1]},"$params.y"]}}`:    "$params.x",
		`{"or":[{"eq":["$params.x",1]},{"eq":["$params.y",1]}]}`:  "$params.x",
		`{"eq":["$params.y","$params.x"]}`:                        "$params.y",
		`{"and":[{"eq":["$params.n",5]},{"lt":["$params.x",1]}]}`: "$params.x",
	} {
		cond, _ := ParseCond(json.RawMessage(text))
		_, err := cond.Eval(env)
		require.EqualError(t, err, path+` is missing: see that it is there, or ask {"exists": "`+path+`"} first`, text)
	}
	for text, want := range map[string]bool{
		`{"eq":["$params.nil",null]}`:                                               true, // null is a value
		`{"exists":"$params.amount"}`:                                               false,
		`{"exists":"$params.o.x.y"}`:                                                false,
		`{"exists":"$shared.none"}`:                                                 false,
		`{"and":[{"exists":"$params.amount"},{"gt":["$params.amount",10]}]}`:        false,
		`{"or":[{"not":{"exists":"$params.amount"}},{"gt":["$params.amount",10]}]}`: true,
		`{"or":["$params.no",{"eq":["$params.n",5]},"$params.amount"]}`:             true,
		`{"eq":["$params","$params"]}`:                                              true, // a text
		`{"eq":["$input",{"i":1}]}`:                                                 true,
	} {
		cond, _ := ParseCond(json.RawMessage(text))
		holds, err := cond.Eval(env)
		require.NoError(t, err, text)
		require.Equal(t, want, holds, text)
	}
	cond, _ := ParseCond(json.RawMessage(`{"eq":["$input",null]}`))
	holds, err := cond.Eval(&Env{})
	require.NoError(t, err)
	require.True(t, holds, "an input that nothing was made of is null")
}

func TestCELNamesMissingValues(t *testing.T) {
	vars := celParams(`{"n":5,"nil":null,"list":[{"x":1}],"o":{"a":{"odd key":1}}}`)
	for source, want := range map[string]string{
		`params.amount > 1`:                    "params.amount is missing: see that it is there, or ask has(params.amount) first",
		`params.o.a.b.c == 1`:                  "params.o.a.b is missing: see that it is there, or ask has(params.o.a.b) first",
		`params.o.a.a == 1`:                    "params.o.a.a is missing: see that it is there, or ask has(params.o.a.a) first",
		`params.nil.x == 1`:                    "params.nil.x is missing: see that it is there, or ask has(params.nil.x) first",
		`params.n.x == 1`:                      "params.n.x is missing: see that it is there, or ask has(params.n.x) first",
		`params.o["odd one"] == 1`:             `params.o["odd one"] is missing: see that it is there, or ask "odd one" in params.o first`,
		`params["amount"] > 1`:                 "params.amount is missing: see that it is there, or ask has(params.amount) first",
		`params.list[1].x == 1`:                "params.list[1] is missing: see that it is there, or ask size(params.list) first",
		`params.list.all(i, i.y == 1)`:         "i.y is missing: see that it is there, or ask has(i.y) first",
		`has(params.p.q)`:                      "params.p is missing: see that it is there, or ask has(params.p) first",
		`params.n == 5 && params.amount > 1`:   "params.amount is missing: see that it is there, or ask has(params.amount) first",
		`params[params.o.a["odd key"]] == 1`:   "no such key: 1",
		`[params].filter(p, true)[0].no == 1`:  "no such key: no",
		`has(params.amount) || params.nope.x`:  "params.nope is missing: see that it is there, or ask has(params.nope) first",
		`{"a": params.n}["a"] == params.a.b.c`: "params.a is missing: see that it is there, or ask has(params.a) first",
	} {
		_, err := evalCEL(t, source, vars)
		require.ErrorContains(t, err, want, source)
	}
	for source, want := range map[string]string{
		`has(params.amount)`:                        "false",
		`has(params.amount) && params.amount > 1`:   "false",
		`params.amount > 1 || params.n == 5`:        "true", // one side decides
		`params.nil == null`:                        "true",
		`"amount" in params`:                        "false",
		`has(params.nil)`:                           "true",
		`params.list.exists(i, has(i.y) || i.x==1)`: "true",
	} {
		got, err := evalCEL(t, source, vars)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
}

func TestEmptyKeysOfASourceAreNull(t *testing.T) {
	vars := func(name string) (Source, bool) {
		all := func() json.RawMessage { return json.RawMessage(`{"done":{"x":1}}`) }
		empty := func(key string) bool { return key == "skipped" }
		switch name {
		case "params":
			return Source{All: all, Empty: empty, Field: func(key string) (json.RawMessage, bool) { return Field(all(), key) }}, true
		case "input":
			return Source{All: all, Empty: empty}, true
		}
		return Source{}, false
	}
	for _, of := range []string{"params", "input"} {
		for source, want := range map[string]string{
			of + `.skipped == null`:                         "true",
			of + `["skipped"] != null`:                      "false",
			`has(` + of + `.skipped)`:                       "false",
			`has(` + of + `.skipped.x)`:                     "false",
			`"skipped" in ` + of:                            "false",
			of + `.done.x == 1`:                             "true",
			of + `.skipped == null ? 0 : ` + of + `.done.x`: "0",
		} {
			got, err := evalCEL(t, source, vars)
			require.NoError(t, err, source)
			require.Equal(t, want, got, source)
		}
		_, err := evalCEL(t, of+`.skipped.x > 1`, vars)
		require.ErrorContains(t, err, of+`.skipped.x is missing`)
		_, err = evalCEL(t, of+`.other == null`, vars)
		require.ErrorContains(t, err, of+`.other is missing`)
	}
}

package expr

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEval(t *testing.T) {
	env := &Env{Loose: true, Params: json.RawMessage(
		`{"n":5,"flag":true,"off":false,"zero":0,"no":"","null":null,"s":"abc","million":1000000,
		"o":{"b":1,"a":{"y":2,"x":1.0}},"list":["a",5,{"k":[1]},"$params.n"],"esc":"\u0061\n","strs":["x","\u0061bc"]}`)}
	for name, want := range map[string]map[string]bool{
		"and, or, not": {
			`{"and":[]}`:                          true,
			`{"or":[]}`:                           false,
			`{"and":[{"eq":[1,1]},{"eq":[1,2]}]}`: false,
			`{"or":[{"eq":[1,1]},{"eq":[1,2]}]}`:  true,
			`{"not":{"eq":[1,2]}}`:                true,
			`{"not":{"and":[]}}`:                  false,
		},
		"a member that is no object is compared with true": {
			`{"and":[true,"true","$params.flag"]}`:                                       true,
			`{"or":[false,"false","$params.off","$params.none","yes",1,null,[true],[]]}`: false,
			`{"not":"$params.flag"}`:                                                     false,
			`{"not":"$params.off"}`:                                                      true,
			`{"not":null}`:                                                               true,
			`{"and":[{}]}`:                                                               false,
		},
		"numbers and numeric text are equal as numbers": {
			`{"eq":["$params.n","5"]}`:           true,
			`{"eq":[5,"5.0"]}`:                   true,
			`{"eq":["5","5.0"]}`:                 true,
			`{"eq":[10,"1e1"]}`:                  true,
			`{"eq":[10,"1_0"]}`:                  true,
			`{"eq":["Inf","+inf"]}`:              true,
			`{"eq":[5," 5"]}`:                    false,
			`{"eq":[16,"0x10"]}`:                 false,
			`{"eq":[16,"0x1p4"]}`:                true,
			`{"eq":[0,""]}`:                      false,
			`{"eq":[1,true]}`:                    false,
			`{"eq":[0,null]}`:                    false,
			`{"eq":[0,-0]}`:                      true,
			`{"eq":[5,"5x"]}`:                    false,
			`{"eq":["1e400","1e401"]}`:           false, // not numeric: out of range
			`{"eq":[1e400,"Inf"]}`:               true,
			`{"ne":[5,"5"]}`:                     false,
			`{"ne":[5,6]}`:                       true,
			`{"eq":["$params.million","1e+06"]}`: true,
		},
		"NaN": {
			`{"eq":["NaN","NaN"]}`:   false,
			`{"ne":["NaN","NaN"]}`:   true,
			`{"eq":["NaN",1]}`:       false,
			`{"gt":["NaN",1]}`:       false,
			`{"lt":["NaN",1]}`:       false,
			`{"ge":["NaN",1]}`:       true,
			`{"le":["NaN",1]}`:       true,
			`{"lt":["NaN","a"]}`:     true,
			`{"in":["NaN",["NaN"]]}`: false,
		},
		"everything else is equal as text": {
			`{"eq":[true,"true"]}`:                                     true,
			`{"eq":["$params.none",null]}`:                             true,
			`{"eq":["$params.none","null"]}`:                           true,
			`{"eq":["$params.null",null]}`:                             true,
			`{"eq":["$params.none",""]}`:                               false,
			`{"eq":["$params.esc","a\n"]}`:                             true,
			`{"eq":["$params.o",{"a":{"x":1,"y":2.0},"b":1e0}]}`:       true,
			`{"eq":["$params.o","{\"a\":{\"x\":1,\"y\":2},\"b\":1}"]}`: true,
			`{"eq":[{"a":1},{"a":2}]}`:                                 false,
			`{"eq":[[1,2],[2,1]]}`:                                     false,
			`{"eq":[[1, 2],"[1,2]"]}`:                                  true,
			`{"eq":[["<"],"[\"<\"]"]}`:                                 true,
			`{"eq":[[1e400,2.0],[1e400, 2.0]]}`:                        true,
			// no references inside a literal
			`{"eq":[["$params.n"],[5]]}`:   false,
			`{"eq":["$params","$params"]}`: true,
		},
		"ordering": {
			`{"gt":[10,"9"]}`:                     true,
			`{"gt":["10","9"]}`:                   true,
			`{"gt":["10a","9"]}`:                  false,
			`{"lt":["10a","9"]}`:                  true,
			`{"ge":[5,"5.0"]}`:                    true,
			`{"le":["$params.n",4]}`:              false,
			`{"lt":["abc","abd"]}`:                true,
			`{"lt":["Z","a"]}`:                    true,
			`{"lt":["z","é"]}`:                    true,
			`{"le":["abc","abc"]}`:                true,
			`{"gt":["$params.none",0]}`:           true, // the text null
			`{"gt":["$params.none",1e300]}`:       true,
			`{"gt":["$params.none","ABC"]}`:       true,
			`{"gt":["$params.none","zoo"]}`:       false,
			`{"lt":["1e+05x",1000000]}`:           true, // against the text 1e+06
			`{"lt":["1e+07x",1000000]}`:           false,
			`{"gt":["1e+05x","$params.million"]}`: false,
			`{"gt":[true,false]}`:                 true,
		},
		"exists": {
			`{"exists":"$params.off"}`:  true,
			`{"exists":"$params.zero"}`: true,
			`{"exists":"$params.no"}`:   true,
			`{"exists":"$params.null"}`: false,
			`{"exists":"$params.none"}`: false,
			`{"exists":"plain text"}`:   true,
			`{"exists":""}`:             true,
			`{"exists":"$params"}`:      true,
			`{"exists":"$input"}`:       false,
			`{"exists":5}`:              false,
			`{"exists":["$params.n"]}`:  false,
		},
		"in and contains": {
			`{"in":["b","abc"]}`:                        true,
			`{"in":["","abc"]}`:                         true,
			`{"in":["d","abc"]}`:                        false,
			`{"in":["b","$params.s"]}`:                  true,
			`{"in":["\n","$params.esc"]}`:               true,
			`{"in":[5,"456"]}`:                          false,
			`{"in":["5","456"]}`:                        true,
			`{"in":["a","$params.list"]}`:               true,
			`{"in":["5","$params.list"]}`:               true,
			`{"in":["$params.n","$params.list"]}`:       true,
			`{"in":[{"k":[1.0]},"$params.list"]}`:       true,
			`{"in":["$params.s","$params.strs"]}`:       true,
			`{"in":["b","$params.list"]}`:               false,
			`{"in":[null,[null]]}`:                      true,
			`{"in":["$params.none",["null"]]}`:          true,
			`{"in":["$params.n",["$params.n"]]}`:        false, // no references inside a literal
			`{"in":["x",[]]}`:                           false,
			`{"in":["a",{"a":1}]}`:                      false,
			`{"in":["a",null]}`:                         false,
			`{"in":[1,1]}`:                              false,
			`{"contains":["abc","b"]}`:                  true,
			`{"contains":["b","abc"]}`:                  false,
			`{"contains":[["x",1],"1"]}`:                true,
			`{"contains":["$params.list","$params.n"]}`: true,
		},
		"wrong shapes are false": {
			``: false, `null`: false, `{}`: false, `true`: false, `"true"`: false, `[]`: false, `{"eq":`: false,
			`{"eq":[1]}`: false, `{"eq":[1,1,1]}`: false, `{"eq":1}`: false, `{"eq":{"a":1}}`: false, `{"eq":null}`: false,
			`{"and":true}`: false, `{"or":{"eq":[1,1]}}`: false, `{"EQ":[1,1]}`: false, `{"xor":[true,true]}`: false,
			`{"ne":[1]}`: false, `{"in":["a"]}`: false,
			`{"not":{}}`: true, `{"not":{"eq":[1]}}`: true, `{"not":{"xor":[]}}`: true,
		},
		"two operators are joined with and": {
			`{"eq":[1,1],"ne":[1,2]}`: true,
			`{"eq":[1,1],"ne":[1,1]}`: false,
			`{"eq":[1,1],"eq":[1,2]}`: false,
			`{"eq":[1,2],"eq":[1,1]}`: true,
		},
	} {
		for text, result := range want {
			t.Run(name+"/"+text, func(t *testing.T) {
				cond, _ := ParseCond(json.RawMessage(text))
				require.Equal(t, result, holdsIn(t, cond, env))
			})
		}
	}
}

func TestEvalResolvesInputAndShared(t *testing.T) {
	for text, want := range map[string]bool{
		`{"eq":["$input.foo",1.0]}`:              true,
		`{"eq":["$input.foo","1"]}`:              false,
		`{"in":[2,"$inputl"]}`:                   true,
		`{"eq":["$shared.s.t[1].u",2]}`:          true,
		`{"exists":"$shared.z"}`:                 false,
		`{"contains":["$shared.l",5]}`:           true,
		`{"eq":["$shared.s",{"t":[1,{"u":2}]}]}`: true,
	} {
		cond, problems := ParseCond(json.RawMessage(text))
		require.Empty(t, problems)
		require.Equal(t, want, holdsIn(t, cond, testEnv()), text)
	}
}

func TestProblems(t *testing.T) {
	for text, want := range map[string][]string{
		`{"and":[{"eq":[1,"$params.a"]},{"not":{"exists":"$input"}},true,"x"]}`: nil,
		``:       {": the expression is not valid JSON"},
		`{"eq":`: {": the expression is not valid JSON"},
		`null`:   {": an expression is an object with one operator"},
		`"true"`: {": an expression is an object with one operator"},
		`{}`:     {": the expression has no operator"},
		`{"eq":[1,1],"ne":[1]}`: {": the expression has 2 operators; write one, or " +
			"join them with and", "ne: the operand is an array of two values"},
		`{"EQ":[1,1]}`:                       {`EQ: unknown operator "EQ"`},
		`{"and":[true,{"or":[{"gt":[1]}]}]}`: {"and[1].or[0].gt: the operand is an array of two values"},
		`{"eq":[1,1,1]}`:                     {"eq: the operand is an array of two values"},
		`{"or":{}}`:                          {"or: the operand is an array of expressions"},
		`{"exists":["a"]}`:                   {"exists: the operand is a reference"},
		`{"not":[true]}`:                     {"not: this is never true: write an expression, a reference or a boolean"},
		`{"and":[1,{"x%d":1}]}`: {"and[0]: this is never true: write an " +
			"expression, a reference or a boolean", `and[1].x%d: unknown operator "x%d"`},
	} {
		t.Run(text, func(t *testing.T) {
			_, problems := ParseCond(json.RawMessage(text))
			var got []string
			for _, p := range problems {
				got = append(got, p.Path+": "+p.Msg)
			}
			require.Equal(t, want, got)
		})
	}
}

func TestExpressionsAreBounded(t *testing.T) {
	nested := func(depth int) json.RawMessage {
		return json.RawMessage(strings.Repeat(`{"and":[`, depth-1) + `{"eq":[1,1]}` + strings.Repeat(`]}`, depth-1))
	}
	cond, problems := ParseCond(nested(maxDepth))
	require.Empty(t, problems)
	require.True(t, holdsIn(t, cond, nil))
	cond, problems = ParseCond(nested(maxDepth + 1))
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Msg, "nest deeper than")
	require.False(t, holdsIn(t, cond, nil))

	wide := `{"or":[` + strings.Repeat("0,", maxTerms) + `true]}`
	cond, problems = ParseCond(json.RawMessage(wide))
	require.Len(t, problems, maxProblems)
	require.False(t, holdsIn(t, cond, nil))

	wide = `{"or":[` + strings.Repeat("false,", maxTerms) + `true]}`
	_, problems = ParseCond(json.RawMessage(wide))
	require.Equal(t, []Problem{{fmt.Sprintf("or[%d]", maxTerms-1), "the expression has more than 1000 terms"}}, problems)
}

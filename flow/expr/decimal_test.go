package expr

import (
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersAreOrderedByTheirExactValues(t *testing.T) {
	rising := []string{
		"-1e2000000", "-10000000000000000002", "-10000000000000000001", "-9007199254740993",
		"-9007199254740992.5", "-1", "-0.10", "-1e-2000000", "0",
		"1e-99999999999999999999", "1e-9999999999999999999", "1e-2000000", "0.1",
		"0.1000000000000000000000001", "1", "1.5", "9007199254740992", "9007199254740993",
		"10000000000000000001",
		"10000000000000000002", "1.0000000000000000003e19", "1e400", "1e2000000", "2e2000000", "1e2000001",
		"1e9999999999999999999", "2e9999999999999999999", "1e99999999999999999999",
	}
	for i, a := range rising {
		for j, b := range rising {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			require.Equal(t, want, CompareNumbers(json.RawMessage(a), json.RawMessage(b)), "%s, %s", a, b)
		}
	}
	for _, same := range [][2]string{{"0", "-0.0e7"}, {"1", "1.0"}, {"100", "1e2"},
		{"0.010", "1E-2"}, {"12e-1", "1.2"}, {"0e99999999999999999999", "0"}} {
		require.Zero(t, CompareNumbers(json.RawMessage(same[0]), json.RawMessage(same[1])), same)
	}
}

func TestComparingNumbersAgreesWithFractions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	number := func() string {
		var b strings.Builder
		b.WriteString([]string{"", "-"}[rng.IntN(2)])
		b.WriteString([]string{"0", "1", "12", "100", "9007199254740993", "99999999999999999999"}[rng.IntN(6)])
		b.WriteString([]string{"", ".0", ".5", ".10", ".00001"}[rng.IntN(5)])
		b.WriteString([]string{"", "e0", "e2", "E+3", "e-2", "e-20"}[rng.IntN(6)])
		return b.String()
	}
	for range 20_000 {
		a, b := number(), number()
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		require.Equal(t, x.Cmp(y), CompareNumbers(json.RawMessage(a), json.RawMessage(b)), "%s, %s", a, b)
	}
}

func TestConditionsCompareExactly(t *testing.T) {
	env := &Env{Params: json.RawMessage(
		`{"a":9007199254740993,"b":9007199254740992,"long":10000000000000000001,"text":"5","flag":"true","o":{"n":[10000000000000000001,1.0]}}`)}
	for text, want := range map[string]bool{
		`{"eq":["10000000000000000001","10000000000000000002"]}`: false,
		`{"eq":[10000000000000000001,10000000000000000002]}`:     false,
		`{"eq":["$params.long",10000000000000000002]}`:           false,
		`{"eq":["$params.long",10000000000000000001.0]}`:         true,
		`{"gt":["$params.a","$params.b"]}`:                       true,
		`{"le":["$params.a","$params.b"]}`:                       false,
		`{"eq":["$params.text",5]}`:                              false,
		`{"ne":["$params.text",5]}`:                              true,
		`{"eq":["5","5.0"]}`:                                     false,
		`{"eq":["NaN","NaN"]}`:                                   true,
		`{"gt":["10","9"]}`:                                      false, // texts
		`{"eq":[true,"true"]}`:                                   false,
		`{"eq":[null,"null"]}`:                                   false,
		`{"and":["$params.flag"]}`:                               false,
		`{"eq":[[1,2],"[1,2]"]}`:                                 false,
		`{"eq":["$params.o",{"n":[10000000000000000001,1]}]}`:    true,
		`{"eq":["$params.o",{"n":[10000000000000000000,1]}]}`:    false,
		`{"in":["$params.a",[9007199254740992]]}`:                false,
		`{"in":["$params.a",[1,9.007199254740993e15]]}`:          true,
		`{"in":[5,["5"]]}`:                                       false,
		`{"contains":["$params.o.n",1]}`:                         true,
		`{"lt":[1e2000000,2e2000000]}`:                           true,
		`{"gt":[1e-2000000,0]}`:                                  true,
	} {
		cond, problems := ParseCond(json.RawMessage(text))
		require.Empty(t, problems, text)
		holds, err := cond.Eval(env)
		require.NoError(t, err, text)
		require.Equal(t, want, holds, text)
	}
}

func TestOnlyValuesOfOneKindHaveAnOrder(t *testing.T) {
	env := &Env{Params: json.RawMessage(`{"amount":"10","nil":null}`)}
	for text, want := range map[string]string{
		`{"gt":["$params.amount",9]}`:               "$params.amount is a string and 9 is a number, so neither is greater: ",
		`{"le":[9,"$params.nil"]}`:                  "9 is a number and $params.nil is null, so neither is greater: ",
		`{"lt":[[1],[2]]}`:                          "[1] is an array and [2] is an array, so neither is greater: ",
		`{"not":{"lt":[true,"a"]}}`:                 "true is a boolean and \"a\" is a string, so neither is greater: ",
		`{"or":[{"gt":["$params.amount",9]},true]}`: "$params.amount is a string",
	} {
		cond, _ := ParseCond(json.RawMessage(text))
		_, err := cond.Eval(env)
		require.ErrorContains(t, err, want, text)
		require.ErrorAs(t, err, new(*OrderError))
	}
	cond, _ := ParseCond(json.RawMessage(`{"or":[{"gt":["$params.none",0]},{"le":["$params.nil",0]}]}`))
	holds, err := cond.Eval(&Env{Params: env.Params, Coerce: true})
	require.NoError(t, err)
	require.False(t, holds, "what is missing is neither greater nor smaller")
}

func TestCELRoundsNoNumber(t *testing.T) {
	vars := celParams(
		`{"a":9007199254740993,"b":9007199254740992.0,"long":10000000000000000001,"next":10000000000000000002,"fine":0.1234567890123456789,"price":0.1,"list":[10000000000000000001]}`)
	for source, want := range map[string]string{
		`params.a > params.b`:                                "true",
		`params.a == params.b`:                               "false",
		`params.a == 9007199254740992.0`:                     "false",
		`params.long == params.next`:                         "false",
		`params.long != params.next`:                         "true",
		`params.long < params.next && 5 < params.long`:       "true",
		`params.long > 9007199254740993`:                     "true",
		`params.long >= 1.5 && !(params.long <= 1e19)`:       "true",
		`params.long in params.list`:                         "true",
		`params.next in params.list`:                         "false",
		`params.list == [params.long]`:                       "true",
		`params.long`:                                        "10000000000000000001",
		`{"x": [params.long, params.fine]}`:                  `{"x":[10000000000000000001,0.1234567890123456789]}`,
		`[params.next, params.long, params.next].distinct()`: "[10000000000000000002,10000000000000000001]",
		`string(params.long)`:                                `"10000000000000000001"`,
		`params.fine > 0.1234567890123456 && params.fine<1`:  "true",
		`params.price == 0.1`:                                "true",
		`9007199254740993 - 1`:                               "9007199254740992",
	} {
		got, err := evalCEL(t, source, vars)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	for source, want := range map[string]string{
		`params.long + 1`:            "+ cannot calculate with 10000000000000000001, which has more digits than 64 bits hold",
		`1 + params.long`:            "+ cannot calculate with 10000000000000000001",
		`-params.long`:               "cannot calculate with 10000000000000000001",
		`int(params.long)`:           "int cannot calculate with 10000000000000000001",
		`math.greatest(params.long)`: "cannot calculate with 10000000000000000001",
		`params.a * 1.0`:             "9007199254740993 cannot be calculated with a number that has a fraction",
		`params.a > "x"`:             "no such overload",
	} {
		_, err := evalCEL(t, source, vars)
		require.ErrorContains(t, err, want, source)
	}
}

package expr

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// largeParams has two equal lists of 950 KB, a list of objects, and a text of the same length.
func largeParams() *Env {
	list := "[" + strings.TrimSuffix(strings.Repeat("12345,", 158_000), ",") + "]"
	objects := "[" + strings.TrimSuffix(strings.Repeat(`{"k":[1,"v"]},`, 67_000), ",") + "]"
	return &Env{Params: json.RawMessage(fmt.Sprintf(`{"l":%s,"m":%s,"o":%s,"s":"%s"}`, list, list,
		objects, strings.Repeat("ab ", 300_000)))}
}

// repeated returns a condition of n equal terms, none of which decides it.
func repeated(term string, n int) string {
	return `{"and":[` + strings.TrimSuffix(strings.Repeat(term+",", n), ",") + `]}`
}

func TestConditionsHaveABudget(t *testing.T) {
	env := largeParams()
	for text, within := range map[string]bool{
		`{"eq":["$params.l","$params.m"]}`: true,
		// each list is read once
		repeated(`{"eq":["$params.l","$params.m"]}`, 2):                  true,
		repeated(`{"exists":"$params.s"}`, 400):                          true,
		repeated(`{"ne":["$params.l",1]}`, 400):                          true,
		repeated(`{"eq":["$params.l","$params.m"]}`, 40):                 false,
		repeated(`{"not":{"in":[7,"$params.l"]}}`, 2):                    true,
		repeated(`{"not":{"in":[7,"$params.l"]}}`, 100):                  false,
		repeated(`{"not":{"contains":["$params.o",{"k":[2]}]}}`, 100):    false,
		repeated(`{"not":{"contains":["$params.s","c"]}}`, 100):          false,
		`{"or":[` + repeated(`{"not":{"in":[7,"$params.l"]}}`, 9) + `]}`: false,
	} {
		c, problems := ParseCond(json.RawMessage(text))
		require.Empty(t, problems)
		holds, err := c.Eval(env)
		if within {
			require.NoError(t, err, text[:min(len(text), 40)])
			require.True(t, holds, text[:min(len(text), 40)])
			continue
		}
		require.EqualError(t, err, "it takes more than the limit of 3,000,000 units of work: "+
			"work on less data, or leave this to a worker", text[:min(len(text), 40)])
		require.False(t, holds)
	}
}

func TestTheCostOfMatchesDependsOnStatesAndBytes(t *testing.T) {
	vars := largeParams().Var
	c, err := celLanguage.Compile(`params.s.matches("b$")`)
	require.NoError(t, err)
	_, err = c.Bool(vars)
	require.NoError(t, err, "a short expression may read a long text")
	c, err = celLanguage.Compile(`params.s.matches("(.*a.*b.*){9}Z")`)
	require.NoError(t, err)
	_, err = c.Bool(vars)
	require.ErrorContains(t, err, tooMuch)
}

func TestReadingAListCostsBudget(t *testing.T) {
	vars := largeParams().Var
	a := NewAllowance()
	c, err := celLanguage.Compile(`size(params.l) > 3`)
	require.NoError(t, err)
	holds, err := c.On(a).Bool(vars)
	require.NoError(t, err)
	require.True(t, holds)
	require.Greater(t, a.Spent(), 200_000)
}

func TestConditionsShareAnAllowance(t *testing.T) {
	env := largeParams()
	env.Allowance = NewAllowance()
	cond, _ := ParseCond(json.RawMessage(`{"in":[7,"$params.l"]}`))
	cel, err := celLanguage.Compile(`7 in params.l`)
	require.NoError(t, err)
	tries := 0
	for ; err == nil; tries++ {
		require.Less(t, tries, 10)
		before := env.Allowance.Spent()
		if _, err = cond.Eval(env); err == nil {
			_, err = cel.On(env.Allowance).Bool(env.Var)
		}
		require.Greater(t, env.Allowance.Spent(), before)
	}
	require.ErrorContains(t, err, tooMuch)
	require.Equal(t, Budget, env.Allowance.Spent())
	_, err = cel.Bool(env.Var)
	require.NoError(t, err, "alone it has a budget of its own")
}

func TestTheCostOfAPatternDependsOnTheBytesRead(t *testing.T) {
	value := json.RawMessage(strings.Repeat(" ", 1_600))
	for pattern, walks := range map[string]int{`{"a":1}`: 2, `{"a":{"b":1},"c":2}`: 3, `{"a":[1,2,3]}`: 2, `{"a":[{"b":1},{"c":1}]}`: 6} {
		p, problems := ParsePattern(json.RawMessage(pattern))
		require.Empty(t, problems)
		require.Equal(t, 1+100*walks, p.Cost(value), pattern)
	}
	a := NewAllowance()
	require.NoError(t, a.Pay(Budget-1))
	require.Error(t, a.Pay(2))
}
